"""What the tests of the Python client share: a daemon of their own, checks, voxelctl."""
import os
import re
import shutil
import subprocess
import sys
import tempfile

import numpy

import voxeld

BUILD, ROOT = sys.argv[1:3]
BIN = os.path.join(BUILD, "bin")
WORK = tempfile.mkdtemp(prefix="voxeld-python.", dir="/tmp")
os.environ["VOXELD_IPC_DIR"] = os.path.join(WORK, "ipc")
os.mkdir(os.environ["VOXELD_IPC_DIR"], 0o750)
n_checks, failures = 0, []
daemon = None


def check(good, words):
    global n_checks
    n_checks += 1
    if not good:
        failures.append(words)
        print("FAIL:", words)


def refused(code, pattern, call, *arguments, **named):
    """code: of the daemon; or "BadInput": seen before anything was sent."""
    try:
        call(*arguments, **named)
    except voxeld.Error as error:
        got = "BadInput" if isinstance(error, voxeld.BadInput) and isinstance(error, ValueError) else error.code
        check(got == code and re.search(pattern, str(error)), f"wanted {code} and '{pattern}', got {error!r}")
    else:
        check(False, f"{call} took what is {code}: {pattern}")


def same(ours, theirs, words, atol=0.0):
    """Two arrays are equal, to atol, NaN where NaN is."""
    ours, theirs = numpy.asarray(ours), numpy.asarray(theirs)
    good = ours.shape == theirs.shape and numpy.allclose(ours.astype(float), theirs.astype(float), rtol=0, atol=atol, equal_nan=True)
    check(good, f"{words}: {ours.ravel()[:5]} {ours.shape}, {theirs.ravel()[:5]} {theirs.shape}")


def ctl(*arguments):
    return subprocess.run([os.path.join(BIN, "voxelctl"), *arguments], capture_output=True, text=True, check=True).stdout


def start_daemon(*options):
    global daemon
    with open(os.path.join(WORK, "voxeld.log"), "a", encoding="utf-8") as log:
        daemon = subprocess.Popen([os.path.join(BIN, "voxeld"), "--backend", "cpu", *options], stdout=log, stderr=log)
    while True:
        if daemon.poll() is not None:
            sys.exit("the daemon did not start")
        try:
            return voxeld.Client()
        except voxeld.Lost:
            pass


def run(main, name):
    """main(client), then the daemon must end well; exits with the result."""
    try:
        client = start_daemon()
        main(client)
        client.close()
        daemon.terminate()
        check(daemon.wait() == 0, "the daemon's exit code")
    finally:
        if daemon is not None and daemon.poll() is None:
            daemon.kill()
        shutil.rmtree(WORK, ignore_errors=True)
    print(f"{name}: {n_checks} checks, {len(failures)} failed")
    sys.exit(1 if failures else 0)
