"""What still holds as root and as an ordinary user, without bubblewrap, without landlock, and under Docker's profile.

In every situation one hostile candidate tries all of `attempts.cpp`. What the verdict lists as in force must have refused
every attempt against it; what must be listed is in SITUATIONS, and docs/trust.md says the same in words."""

import concurrent.futures
import contextlib
import ctypes
import functools
import os
import re
import shutil
import socket
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import harness

AS_IN = Path(os.environ.get("CUDA_AGENT_TEST_AS_IN", harness.BINARY.resolve().parent.parent / "tests" / "as_in"))
PYTHON = os.environ.get("CUDA_AGENT_PYTHON", "python3")
KERNEL = (Path(__file__).parent / "attempts.cpp").read_text()
ORDINARY_USER = 65534  # nobody
LANDLOCK = ctypes.CDLL(None).syscall(444, None, 0, 1)

EVERYTHING = {
    "namespaces",
    "file system",
    "network",
    "other processes",
    "capabilities",
    "no_new_privs",
    "resource limits",
    "inherited descriptors",
    "process tree",
    "system-call filter",
}
WITH_LANDLOCK = EVERYTHING - {"namespaces"} - ({"network"} if LANDLOCK < 4 else set())
WITH_NEITHER = WITH_LANDLOCK - {"file system", "other processes", "network"}


@dataclass
class Situation:
    """How the judge is started, and what it must say that it has."""

    in_force: set
    words: tuple = ()  # for as_in
    user: int = 0
    bubblewrap: bool = True
    landlock: bool = True
    why: str = ""  # what doctor and a refusal say of what is missing
    needs: tuple = field(default=())


SITUATIONS = {
    "root": Situation(EVERYTHING, needs=("bubblewrap",)),
    "user": Situation(EVERYTHING, user=ORDINARY_USER, needs=("bubblewrap",)),
    "root without landlock": Situation(EVERYTHING, words=("no-landlock",), landlock=False, needs=("bubblewrap",)),
    "root without bubblewrap": Situation(
        WITH_LANDLOCK, bubblewrap=False, why="bubblewrap is not installed", needs=("landlock",)
    ),
    "user without bubblewrap": Situation(
        WITH_LANDLOCK, user=ORDINARY_USER, bubblewrap=False, why="bubblewrap is not installed", needs=("landlock",)
    ),
    "Docker, root": Situation(
        WITH_LANDLOCK, words=("docker",), why="bubblewrap does not work here.*seccomp=unconfined", needs=("landlock",)
    ),
    "Docker, user": Situation(
        WITH_LANDLOCK,
        words=("docker",),
        user=ORDINARY_USER,
        why="bubblewrap does not work here.*seccomp=unconfined",
        needs=("landlock",),
    ),
    "root with neither": Situation(
        WITH_NEITHER, words=("no-landlock",), bubblewrap=False, landlock=False, why="no landlock"
    ),
    "user with neither": Situation(
        WITH_NEITHER,
        words=("no-landlock",),
        user=ORDINARY_USER,
        bubblewrap=False,
        landlock=False,
        why="no landlock",
    ),
}
WEAKER = [name for name, one in SITUATIONS.items() if one.in_force != EVERYTHING]

# A whole run, for its reward; test_landlock.py has one without bubblewrap.
TIMED = ("Docker, user", "root with neither")

# What keeps an attempt from working: any of these that is in force.
KEPT_BY = {
    "read a file of the user's": ("file system",),
    "read the task": ("file system",),
    "read what only root may": ("file system",),
    "write outside": ("file system",),
    "write to its own folder": ("file system",),
    "write to the system": ("file system",),
    "write to the kernel's settings": ("file system",),
    "connect by TCP": ("network", "system-call filter"),
    "send by UDP": ("network", "system-call filter"),
    "connect to a local service": ("network", "system-call filter"),
    "connect to an abstract name": ("network", "system-call filter"),
    "send to a local service": ("network", "system-call filter"),
    "send to a local service from a pair": ("network", "system-call filter"),
    "fork a daemon": ("system-call filter",),
    "execute a program": ("system-call filter",),
    "signal another process": ("other processes", "system-call filter"),
    "signal a thread of another process": ("other processes", "system-call filter"),
    "signal a thread by its number": ("other processes", "system-call filter"),
    "queue a signal for another process": ("other processes", "system-call filter"),
    "signal another process by a handle": ("other processes", "system-call filter"),
    "trace another process": ("other processes", "system-call filter"),
    "read another's memory by a call": ("other processes", "system-call filter"),
    "open another's memory": ("other processes",),
    "read another's environment": ("other processes",),
    "limit another process": ("other processes", "system-call filter"),
    "choose its own processors": ("system-call filter",),
    "bind another process to one processor": ("other processes", "system-call filter"),
    "schedule another process as idle": ("other processes", "system-call filter"),
    "lower another process's priority": ("other processes", "system-call filter"),
    "lower another process's priority at the disk": ("other processes", "system-call filter"),
    # The judge's own processes hide from others of their user, whatever else there is.
    "open the judge's memory": ("capabilities",),
    "read the judge's environment": ("capabilities",),
    "signal the judge": ("other processes", "system-call filter"),
    "open the reference worker's memory": ("capabilities",),
    "signal the reference worker": ("other processes", "system-call filter"),
    "bind the reference worker to one processor": ("other processes", "system-call filter"),
    "limit the reference worker": ("other processes", "system-call filter"),
    "have capabilities": ("capabilities",),
    "gain privileges": ("no_new_privs",),
    "hold a file that was open": ("inherited descriptors",),
    "dump core": ("resource limits",),
}
# In namespaces of its own a candidate may make them, and they end with it.
LEAVINGS = ("leave shared memory", "leave a queue")

# Its memory is looked for; it ends when its standard input does.
VICTIM = """
import ctypes, sys
words = ctypes.create_string_buffer(b"words")
print(hex(ctypes.addressof(words)), flush=True)
sys.stdin.read()
"""


@functools.cache
def why_not(name):
    """Why a situation cannot be had here, or nothing."""
    situation = SITUATIONS[name]
    if not AS_IN.is_file():
        return f"{AS_IN} is not built"
    if os.geteuid() != 0:
        return "only root can become another user and put Docker's profile on itself"
    if "landlock" in situation.needs and LANDLOCK < 1:
        return "this kernel has no landlock"
    if "bubblewrap" in situation.needs:
        tried = subprocess.run(
            command_in(situation, "bwrap", "--unshare-all", "--ro-bind", "/", "/", "true"),
            capture_output=True,
            timeout=20,
            check=False,
        )
        if tried.returncode != 0:
            return f"bubblewrap does not work here: {tried.stderr.decode(errors='replace').strip()}"
    for program in (str(harness.BINARY), PYTHON):
        tried = subprocess.run(
            command_in(situation, program, "--version"), capture_output=True, timeout=20, check=False
        )
        if tried.returncode != 0:
            return f"{program} cannot be run there: {tried.stderr.decode(errors='replace').strip()}"
    return ""


@functools.cache
def folders_to_reach():
    """Where the program and the interpreter lie, which may be in root's home."""
    asked = subprocess.run(
        [PYTHON, "-c", "import sys, torch; print(sys.prefix, sys.base_prefix, torch.__file__, sep='\\n')"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    prefix, base, torch = asked.stdout.split("\n")[:3]
    build = harness.BINARY.resolve().parents[1]
    return {prefix, base, str(Path(torch).parents[1]), str(build), str(harness.REPOSITORY), str(harness.CACHE.parent)}


def command_in(situation, *command):
    user = ()
    if situation.user:
        user = (f"user={situation.user}", *(f"reach={folder}" for folder in sorted(folders_to_reach())))
    return [str(AS_IN), *situation.words, *user, "--", *map(str, command)]


class Place:
    """A folder that the situation's user owns, with a workspace, and all that a candidate could aim at."""

    def __init__(self, situation):
        self.situation = situation
        self.folder = Path(tempfile.mkdtemp(prefix="cuda-agent-variants-"))
        self.workspace = harness.tiny_workspace(self.folder / "workspace", kernel=KERNEL)
        (self.folder / "secret").write_text("words")
        (self.folder / "empty").mkdir()
        self.environment = {"CUDA_AGENT_CACHE": cache_of(situation.user), "CUDA_AGENT_PYTHON": PYTHON}
        if not situation.bubblewrap:  # by its path the compiler is the one that the cache knows
            self.environment |= {"PATH": self.folder / "empty", "CXX": shutil.which("g++")}
        self.sockets = {}
        self._listen("TCP", socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", 0))
        self._listen("UDP", socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0))
        self._listen("STREAM", socket.AF_UNIX, socket.SOCK_STREAM, str(self.folder / "stream"))
        self._listen("DATAGRAM", socket.AF_UNIX, socket.SOCK_DGRAM, str(self.folder / "datagram"))
        self._listen("ABSTRACT", socket.AF_UNIX, socket.SOCK_STREAM, f"\0{self.folder.name}")
        self.key = int.from_bytes(os.urandom(3), "big") | 1 << 24
        give_to(self.folder, situation.user)
        self.victim = subprocess.Popen(
            command_in(situation, PYTHON, "-c", VICTIM), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.address = self.victim.stdout.readline().strip()
        self.litter_before = litter()

    def _listen(self, name, family, kind, address):
        made = socket.socket(family, kind | socket.SOCK_NONBLOCK)
        made.bind(address)
        if kind == socket.SOCK_STREAM:
            made.listen()
        self.sockets[name] = made

    def targets(self):
        return {
            "SECRET": self.folder / "secret",
            "TASK": self.workspace / "model.py",
            "ROOTS": "/etc/shadow",
            "LITTER": self.folder / "cuda-agent-exploit",
            "TCP": self.sockets["TCP"].getsockname()[1],
            "UDP": self.sockets["UDP"].getsockname()[1],
            "STREAM": self.folder / "stream",
            "DATAGRAM": self.folder / "datagram",
            "ABSTRACT": f"@{self.folder.name}",
            "VICTIM": self.victim.pid,
            "ADDRESS": self.address,
            "KEY": self.key,
            "QUEUE": f"/{self.folder.name}",
            "SPAN": f"86400.{self.key}",
        }

    def ask(self, *arguments):
        return harness.cuda_agent(*arguments, before=command_in(self.situation), env=self.environment, timeout=120)

    def judged(self, command, *arguments):
        return self.ask(command, self.workspace, "--device", "cpu", "--json", *arguments)

    def attack(self):
        """The answer about the candidate that tries everything."""
        lines = [f"os.environ[{name!r}] = {str(value)!r}" for name, value in self.targets().items()]
        lines.append("os.environ['OWN'] = os.path.dirname(__file__)")
        hostile = "import os\n\n" + "\n".join(lines) + "\n\n" + harness.tiny_candidate()
        (self.workspace / "model_new.py").write_text(hostile)
        asked = ("strict",) if self.situation.in_force == EVERYTHING else ("any",)
        return self.judged("verify", "--trials", "1", *harness.NO_POLICY, "--require-sandbox", *asked)

    def run_a_right_one(self):
        (self.workspace / "model_new.py").write_text(harness.tiny_candidate())
        (self.workspace / "kernels" / "tiny_cpu.cpp").write_text(harness.TINY_KERNEL)
        return self.judged("run", "--baseline", "eager", "--trials", "1")

    def traces(self):
        """What an ask has left behind or changed, in words."""
        found = [f"{name}: somebody connected or sent" for name, one in self.sockets.items() if heard(one)]
        found += [f"{path} was written" for path in self.folder.glob("cuda-agent-exploit*")]
        found += [f"{name} was left" for name in sorted(litter() - self.litter_before)]
        if any(line.split()[0] == str(self.key) for line in Path("/proc/sysvipc/shm").read_text().splitlines()):
            found.append("shared memory was left")
        if (Path("/dev/mqueue") / self.folder.name).exists():
            found.append("a queue was left")
        found += self.harm()
        if not harness.lock_is_free(self.workspace):
            found.append("the lock is held")
        found += [f"{name} is left in the scratch folder" for name in harness.left_in_scratch(self.workspace)]
        return found + running(str(self.folder)) + running(self.targets()["SPAN"])

    def harm(self):
        number = self.victim.pid
        if self.victim.poll() is not None:
            return ["the victim has ended"]
        facts = {
            "bound": os.sched_getaffinity(number) != os.sched_getaffinity(0),
            "scheduled otherwise": os.sched_getscheduler(number) != os.SCHED_OTHER,
            "of a lower priority": os.getpriority(os.PRIO_PROCESS, number) != os.getpriority(os.PRIO_PROCESS, 0),
        }
        return [f"the victim is {what}" for what, is_so in facts.items() if is_so]

    def close(self):
        self.victim.stdin.close()
        self.victim.wait(10)
        self.victim.stdout.close()
        for one in self.sockets.values():
            one.close()
        shutil.rmtree(self.folder)


def heard(listener):
    try:
        if listener.type & socket.SOCK_STREAM:
            listener.accept()[0].close()
        else:
            listener.recv(1)
    except BlockingIOError:
        return False
    return True


def litter():
    return {str(path) for place in ("/tmp", "/dev/shm", "/usr/lib") for path in Path(place).glob("cuda-agent-exploit*")}


def running(words):
    """Processes that have these words in their command lines."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = file.read_text().replace("\0", " ")
        except OSError:
            continue
        if words in line:
            found.append(f"still running: {line}")
    return found


def give_to(folder, user):
    folder.chmod(0o755)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, user, user or -1)


@functools.cache
def cache_of(user):
    """The tests' cache; for another user a folder of his own, which has the same files as links."""
    if user == 0:
        return harness.CACHE
    own = harness.CACHE.with_name(harness.CACHE.name + "-of-a-user")
    shutil.rmtree(own, ignore_errors=True)
    # Other tests that run meanwhile may take away what was listed: that is compiled again then.
    with contextlib.suppress(shutil.Error):
        shutil.copytree(harness.CACHE, own, copy_function=os.link, ignore=shutil.ignore_patterns(".*", "torch-compile"))
    for path in (own, *own.rglob("*")):
        if path.is_dir():
            os.chown(path, user, user)
    return own


@dataclass
class Seen:
    """All that was asked in one situation."""

    attack: harness.Answer
    traces: list
    doctor: harness.Answer
    strict: harness.Answer
    run: harness.Answer


def look(name):
    place = Place(SITUATIONS[name])
    try:
        attack = place.attack()
        traces = place.traces()
        doctor = place.ask("doctor", place.workspace, "--json")
        strict = place.judged("verify", "--trials", "1", "--require-sandbox", "strict") if name in WEAKER else None
        run = place.run_a_right_one() if name in TIMED else None
        return Seen(attack, traces, doctor, strict, run)
    finally:
        place.close()


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What was seen in every situation that can be had here, two at a time: the asks spend their time on importing."""
    harness.passes(harness.tiny_workspace(tmp_path_factory.mktemp("first")))  # what can be cached is
    possible = [name for name in SITUATIONS if not why_not(name)]
    for name in possible:
        cache_of(SITUATIONS[name].user)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        yield dict(zip(possible, pool.map(look, possible), strict=True))


def of(seen, name):
    if why_not(name):
        pytest.skip(why_not(name))
    return seen[name]


def attempts(answer):
    """Why each attempt did not work, or that it did."""
    return dict(re.findall(r"^attempt (.*?): (.*)$", answer.verdict["candidate"]["output"], re.MULTILINE))


def in_force(listed):
    return {one["name"] for one in listed if one["in_force"]}


@pytest.mark.parametrize("name", SITUATIONS)
def test_a_right_candidate_is_judged_and_the_verdict_lists_what_is_in_force(name, seen):
    verdict = harness.expect(of(seen, name).attack, 0, "pass", fault="none")
    listed = {one["name"]: one for one in verdict["protections"]}
    assert in_force(verdict["protections"]) & EVERYTHING == SITUATIONS[name].in_force
    for missing in EVERYTHING - SITUATIONS[name].in_force:
        assert re.search(SITUATIONS[name].why, listed[missing]["detail"]), listed[missing]


@pytest.mark.parametrize("name", SITUATIONS)
def test_what_is_listed_as_in_force_holds_against_a_hostile_candidate(name, seen):
    answer = of(seen, name).attack
    tried = attempts(answer)
    assert set(tried) == {*KEPT_BY, *LEAVINGS}, str(answer)
    held = in_force(answer.verdict["protections"])
    worked = [one for one, kept_by in KEPT_BY.items() if held & set(kept_by) and tried[one] == "it worked"]
    assert worked == [], str(answer)


@pytest.mark.parametrize("name", SITUATIONS)
def test_nothing_is_left_or_changed_afterwards(name, seen):
    may_write = {"file system"} - SITUATIONS[name].in_force
    assert [one for one in of(seen, name).traces if not (may_write and "was written" in one)] == []


@pytest.mark.parametrize("name", SITUATIONS)
def test_doctor_lists_the_same_as_the_verdict(name, seen):
    answer = of(seen, name)
    listed = {one["name"]: one for one in answer.doctor.verdict["protections"]}
    assert set(listed) == EVERYTHING
    assert in_force(listed.values()) == SITUATIONS[name].in_force
    for missing in EVERYTHING - SITUATIONS[name].in_force:
        assert re.search(SITUATIONS[name].why, listed[missing]["detail"]), listed[missing]


@pytest.mark.parametrize("name", WEAKER)
def test_a_strict_ask_is_refused_and_names_what_is_missing(name, seen):
    words = f"^--require-sandbox strict: namespaces is not in force: .*{SITUATIONS[name].why}"
    harness.expect(of(seen, name).strict, 3, "environment_error", words, fault="environment")


@pytest.mark.parametrize("name", TIMED)
def test_a_reward_says_that_the_sandbox_was_weaker(name, seen):
    answer = of(seen, name).run
    verdict = answer.verdict
    assert answer.code == 0 and verdict["reward"]["value"] is not None, str(answer)
    assert "under a weaker sandbox" in verdict["reward"]["reason"]


@pytest.mark.parametrize("sandbox", [None, "landlock", "none"])
def test_root_is_told_that_a_closed_workspace_of_another_user_is_out_of_reach(sandbox):
    if os.geteuid() != 0:
        pytest.skip("only root can enter another user's closed folder")
    folder = Path(tempfile.mkdtemp(prefix="cuda-agent-variants-"))
    try:
        made = harness.tiny_workspace(folder / "workspace")
        give_to(folder, ORDINARY_USER)
        folder.chmod(0o700)
        answer = harness.judged("verify", made, env={"CUDA_AGENT_SANDBOX": sandbox})
        harness.expect(answer, 3, "environment_error", f"^{folder} is closed to a sandbox that root starts", fault="environment")
        harness.nothing_left(made)
    finally:
        shutil.rmtree(folder)


def test_an_attempt_that_nothing_keeps_from_working_works(seen):
    """Else the attempts would show nothing."""
    tried = attempts(of(seen, "user with neither").attack)
    for one in ("read a file of the user's", "read the task", "write outside", "read another's environment"):
        assert tried[one] == "it worked", tried
