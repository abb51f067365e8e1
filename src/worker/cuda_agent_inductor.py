"""torch.compile in a worker: imported ahead of its use, and what it asks of the host compiler remembered between asks."""

import contextlib
import functools
import hashlib
import os
import tempfile


def remember_vector_instructions():
    """Inductor asks for every vector instruction set, in every process, whether the compiler and the loader take it: a
    child process that imports torch for each, half a minute together. What was found to work is written to Inductor's
    cache folder, under everything that its own answer depends on. What did not work is asked for again.
    """
    try:
        from torch._inductor import cpu_vec_isa
        from torch._inductor.runtime.cache_dir_utils import cache_dir

        fingerprint = cpu_vec_isa._get_isa_dry_compile_fingerprint
        ask = cpu_vec_isa.VecISA.check_build
    except (ImportError, AttributeError):  # another torch: it asks as often as it wants
        return

    @functools.wraps(ask)
    def check_build(isa, code):
        key = hashlib.sha256(f"{fingerprint(isa.build_arch_flags())}\n{code}".encode()).hexdigest()
        folder = os.path.join(cache_dir(), "vector-instructions")
        known = os.path.join(folder, key)
        if os.path.exists(known):
            return True
        works = ask(isa, code)
        if works:
            os.makedirs(folder, exist_ok=True)
            descriptor, written = tempfile.mkstemp(dir=folder)
            os.close(descriptor)
            os.replace(written, known)
        return works

    cpu_vec_isa.VecISA.check_build = check_build


def import_compiler():
    """What torch.compile needs. Where it cannot be imported, its first use says why."""
    with contextlib.suppress(Exception):
        import torch._dynamo
        import torch._inductor.compile_fx


def exercise(device):
    """Compiles and runs a small function, and lets torch forget it. Its kernels come from Inductor's cache from the second
    time on. On a GPU Inductor itself is only imported: to use it would start CUDA, whose memory a spare shall not take."""
    import torch
    from torch._dynamo.utils import counters

    import_compiler()
    remember_vector_instructions()
    compiled = torch.compile(lambda x: torch.relu(x) + 1, backend="inductor" if device == "cpu" else "aot_eager")
    with torch.no_grad():
        compiled(torch.ones(64))
    torch._dynamo.reset()
    counters.clear()
