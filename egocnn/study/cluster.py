"""Independent calls of one function -> their results as they finish: on processes here, or on a Ray cluster. A worker
that dies costs its own call a retry, others nothing. A cluster is sent this package; the libraries must be there."""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import islice, starmap
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import torch

from egocnn import __version__
from egocnn.data.sources.text import optional
from egocnn.errors import ConfigError, EgoCNNError
from egocnn.nn import device as devices
from egocnn.train.run import machine, versions

LOCAL = "local"  # The address that means: start Ray on this machine, for this one command.
RETRIES = 3  # How often a call may lose its worker, each time to be given to another one, before it is given up.
DIED = f"{RETRIES + 1} workers died of the same job, one after the other; is there too little memory for it?"
LIBRARIES = ("scikit-learn", "scipy", "torch-geometric", "grakel", "gensim", "igraph")  # that other models are made of
PATIENCE = 20.0  # Seconds within which a cluster must answer; Ray itself would wait for a quarter of an hour.

KEEPS_MEMORY = {"MALLOC_TRIM_THRESHOLD_": "500000000", "MALLOC_MMAP_THRESHOLD_": "100000000"}
"""For glibc, which else hands back to the system, and gets zeroed again, what every portion takes, at great cost."""
RAY_ENVIRONMENT = {  # what Ray reads when it is imported, unless it is set already
    **KEEPS_MEMORY,
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".*",  # else it reports dead workers on stdout, in the middle of our results
    "RAY_IGNORE_UNHANDLED_ERRORS": "1",  # of calls that have been called off
    "RAY_USAGE_STATS_ENABLED": "0",  # its makers need not know who computes what
    "RAY_task_oom_retries": str(RETRIES),  # else a call that takes too much memory is tried for ever
}

TRY_TO_CONNECT = """
import sys, ray
try:
    ray.init(sys.argv[1], log_to_driver=False, logging_level="ERROR")
except Exception as error:
    print(" ".join(str(error).split()))
    sys.exit(1)
"""
Result = TypeVar("Result")
Sender: TypeAlias = tuple[Callable[..., Any], Callable[..., Any], int]
"""what sends a call, what waits for the result of what was sent, and how many calls to send ahead"""


def run_jobs(
    job: Callable[..., Result], calls: Sequence[tuple[Any, ...]], *, jobs: int | None = None, ray: str | None = None
) -> Generator[Result]:
    """``job(*call)`` for every call, in the order in which they finish. Without ``ray``: ``jobs`` calls at a time, by
    joblib in processes of their own (1 by default, in this process). With ``ray``, the address of a cluster: as many at
    a time as it has CPUs, or at most ``jobs``. Each of several processes computes in one thread. Closing the results
    calls off what still runs."""
    if not calls:
        return
    if ray or (jobs or 1) > 1:
        job = partial(_in_one_thread, job)
    if ray:
        results = _on_ray(job, calls, jobs, ray)
    else:
        from joblib import Parallel, delayed

        here = Parallel(n_jobs=jobs or 1, return_as="generator_unordered")
        results = here(delayed(job)(*call) for call in calls)
    try:
        yield from results
    finally:  # what still runs is called off now, not when the results are collected
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "[0-9]+ tasks (have been|which were)", UserWarning)  # joblib
            results.close()


def in_order(
    job: Callable[..., Result], calls: Iterable[tuple[Any, ...]], *, jobs: int | None = None, ray: str | None = None
) -> Generator[Result]:
    """The same in the order of the calls, which are taken as they are needed and may be very many: of those that are
    not finished there are a few more than processes. A process that dies costs its call a retry, here as on Ray."""
    if ray is None and (jobs or 1) == 1:
        yield from starmap(job, calls)
        return
    from joblib.externals.loky.process_executor import BrokenProcessPool

    with connected(ray), (_local_processes if ray is None else _ray_tasks)(job, jobs) as (send, receive, ahead):
        source, died = iter(calls), 0
        waiting = deque[list[Any]]([call, None] for call in islice(source, ahead))
        while waiting:
            try:
                for each in waiting:
                    each[1] = each[1] or send(each[0])
                found = receive(waiting[0][1])
            except BrokenProcessPool as error:  # one that died takes the others with it
                died += 1
                if died > RETRIES:
                    raise EgoCNNError(DIED) from error
                waiting = deque([call, None] for call, _ in waiting)
                continue
            died = 0
            waiting.popleft()
            yield found
            waiting.extend([call, None] for call in islice(source, 1))


@contextmanager
def _local_processes(job: Callable[..., Any], jobs: int | None) -> Iterator[Sender]:
    """Processes of this machine; where their results are not waited for, they are killed."""
    from joblib.externals.loky.process_executor import BrokenProcessPool, ProcessPoolExecutor

    # processes of its own: joblib would take those that loky keeps for all to be its own
    own: dict[str, Any] = {"initializer": _end_with, "initargs": (os.getpid(),)}
    own["env"] = {"OMP_NUM_THREADS": "1", **KEEPS_MEMORY}
    pool = (start := partial(ProcessPoolExecutor, jobs, **own))()

    def send(call: tuple[Any, ...]) -> Any:
        nonlocal pool
        with suppress(BrokenProcessPool):
            return pool.submit(job, *call)
        pool = start()
        return pool.submit(job, *call)

    try:
        yield send, lambda sent: sent.result(), 2 * (jobs or 1)
    except BaseException:
        # killed, not shut down: with calls under way, loky may trip over those that no process has yet
        for number in list(pool._processes):
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        raise
    pool.shutdown()


def _end_with(parent: int) -> None:
    """A process whose parent was killed would wait for calls for ever."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def _ray_tasks(job: Callable[..., Any], jobs: int | None) -> Iterator[Sender]:
    ray = _library()
    task = ray.remote(num_cpus=1, max_retries=RETRIES)(lambda job, call: job(*call))
    sent = ray.put(job)
    yield (lambda call: task.remote(sent, call)), partial(_result, ray), jobs or 2 * int(ray.cluster_resources()["CPU"])


def _in_one_thread(job: Callable[..., Result], *call: Any) -> Result:
    with one_thread():
        return job(*call)


def _on_ray(
    job: Callable[..., Result], calls: Sequence[tuple[Any, ...]], jobs: int | None, address: str
) -> Generator[Result]:
    with connected(address), _ray_tasks(job, jobs) as (send, receive, _):
        ray, waiting = _library(), iter(calls)
        running = list(map(send, islice(waiting, jobs)))
        try:
            while running:
                (finished,), running = ray.wait(running)
                running += map(send, islice(waiting, 1))
                yield receive(finished)
        finally:
            for each in running:
                ray.cancel(each, force=True)


def _result(ray: Any, finished: Any) -> Any:
    errors = ray.exceptions
    try:
        return ray.get(finished)
    except errors.RayTaskError as error:
        if isinstance(error.cause, ImportError):
            raise EgoCNNError(f"a worker of the Ray cluster lacks a library: {error.cause}") from error
        if isinstance(error.cause, errors.RayError):
            raise EgoCNNError(f"the Ray cluster failed: {_first_line(error.cause)}") from error
        raise error.cause from error
    except errors.OutOfMemoryError as error:
        raise MemoryError("Ray ended a worker that took too much memory") from error
    except errors.WorkerCrashedError as error:
        raise EgoCNNError(DIED) from error
    except errors.RayError as error:
        raise EgoCNNError(f"the Ray cluster failed: {_first_line(error)}") from error


@contextmanager
def connected(address: str | None) -> Iterator[None]:
    """Hold one connection for all that runs inside; without an address, and inside another connection, do nothing."""
    if address is None or _library().is_initialized():
        yield
        return
    ray = _library()
    settings: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address == LOCAL:
        settings["include_dashboard"] = False
    else:
        _check_answers(address)
        settings["runtime_env"] = {"py_modules": [str(folder) for folder in packages()]}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ray.init(address, **settings)
    except Exception as error:  # of many kinds, RuntimeError, OSError and ValueError among them
        where = "does not start on this machine" if address == LOCAL else f"cannot be used at {address}"
        raise ConfigError(f"Ray {where}: {_first_line(error)}") from error
    try:
        yield
    finally:
        ray.shutdown()


def _library() -> Any:
    for name, value in RAY_ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Ray's own future, nothing a user could do anything about
        return optional("ray", "cluster")


def packages() -> list[Path]:
    """What a cluster elsewhere is sent: this package, and the lab beside it where its models are used."""
    own = Path(__file__).resolve().parent.parent
    file, beside = getattr(sys.modules.get("lab"), "__file__", None), own.parent / "lab"
    return [own, beside] if file is not None and Path(file).resolve().parent == beside else [own]


def _check_answers(address: str) -> None:
    """Refuse an address that nobody answers at; in a process of its own, as Ray's attempts cannot be broken off."""
    command = [sys.executable, "-c", TRY_TO_CONNECT, address]
    try:
        done = subprocess.run(command, capture_output=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
        if done.returncode == 0:
            return
        reason = done.stdout.decode(errors="replace").strip().rpartition("\n")[2]
        errors, reason = done.stderr, f": {reason or f'exit code {done.returncode}'}"
    except subprocess.TimeoutExpired as late:
        errors, reason = late.stderr or b"", f" within {PATIENCE:.0f} s; 'local' starts Ray on this machine"
    if b"InvalidAuthToken" in errors:
        raise ConfigError(f"the Ray cluster at {address} asks for its token: set RAY_AUTH_MODE=token, RAY_AUTH_TOKEN")
    raise ConfigError(f"no Ray cluster answers at {address}{reason}")


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


def name_machine(device: torch.device, ray: str | None = None) -> str:
    """The processors that compute; of a Ray cluster elsewhere only who called it is known."""
    here = f"{torch.cuda.get_device_name(device)}, {machine()}" if device.type == "cuda" else machine()
    return here if ray in (None, LOCAL) else f"Ray cluster, called from {here}"


def library_versions() -> dict[str, str]:
    """The version of every library that is installed and may decide a score."""
    found = {"egocnn": __version__, **versions()}
    for library in LIBRARIES:
        with suppress(PackageNotFoundError):
            found[library] = version(library)
    return found


def peak_megabytes(device: torch.device) -> float | None:
    """The most memory so far: the GPU's where it has been used, else this process's."""
    if device.type == "cuda" and (used := torch.cuda.max_memory_allocated(device)):
        return round(used / 1e6, 1)
    if os.name != "posix":
        return None
    import resource

    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return round(largest / (1e6 if sys.platform == "darwin" else 1e3), 1)


@contextmanager
def one_thread() -> Iterator[None]:
    """Processes with several threads each crawl: torch and all other libraries compute on one."""
    from threadpoolctl import threadpool_limits

    with devices.one_thread(), threadpool_limits(1):
        yield
