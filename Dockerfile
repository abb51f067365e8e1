# cuda-agent with everything that it needs at run time: compilers, Python, torch.
#
#   docker build -t cuda-agent .                                                             CPU only
#   docker build -t cuda-agent --build-arg BASE=nvidia/cuda:13.0.2-devel-ubuntu24.04 .       with nvcc
#
#   docker run --rm -it --gpus all \
#     --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined \
#     -v "$PWD/my-workspace:/workspace" cuda-agent run
#
# bubblewrap makes user, mount and PID namespaces for the code that it judges. Docker's default profiles forbid that;
# the three --security-opt flags allow it. Without them cuda-agent runs with a weaker sandbox and says so in
# every verdict. Without a GPU leave out --gpus all.
ARG BASE=ubuntu:24.04
FROM ${BASE}

COPY . /opt/cuda-agent/source
RUN /opt/cuda-agent/source/scripts/setup.sh \
 && cmake --install /opt/cuda-agent/source/build --prefix /usr/local \
 && rm -rf /opt/cuda-agent/source/build /root/.cache /var/lib/apt/lists/*

ENV CUDA_AGENT_PYTHON=/opt/cuda-agent/source/.venv/bin/python
WORKDIR /workspace
ENTRYPOINT ["cuda-agent"]
CMD ["run"]
