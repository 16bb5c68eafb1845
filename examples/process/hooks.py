#!/usr/bin/env python3
# Hooks of `stint act`: a job is a file jobs/NAME with a consumer and a shell command, and runs as a process.
import fcntl, json, os, pathlib, signal, subprocess, sys

jobs, runs, asked = pathlib.Path("jobs"), pathlib.Path("runs"), json.load(sys.stdin)
runs.mkdir(exist_ok=True)
alone = open(runs / "lock", "w"); fcntl.flock(alone, fcntl.LOCK_EX)  # one hook at a time: looking at a lock takes it
def lock(path):  # the process of a unit holds the lock of its file: so a second start, or a crash, changes nothing
    file = open(path, "a+")
    try: fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError: return None
    return file
def list_():
    demand = [{"consumer": json.loads(f.read_text())["consumer"], "allocation": f.name, "units": 1, "ncpus": 1}
              for f in jobs.glob("[!.]*")]
    running = [json.loads(f.read_text()) for f in runs.glob("*.json") if lock(f) is None]
    return {"demand": demand, "running": running, "hosts": [{"host": h, "ncpus": 4} for h in ("h1", "h2")]}
def start(unit):
    file = lock(runs / f"{unit['id']}.json")
    if file is None: return  # it runs
    command = json.loads((jobs / unit["allocation"]).read_text())["command"]
    file.truncate(0); file.write(json.dumps(unit)); file.flush()
    script = f"echo $$ >runs/{unit['id']}.pid; {command}; rm jobs/{unit['allocation']}"  # a job that ended is wanted no more
    subprocess.Popen(["sh", "-c", script], pass_fds=[file.fileno()], start_new_session=True,
                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
def stop(unit):
    if (runs / f"{unit['id']}.json").exists() and lock(runs / f"{unit['id']}.json") is None:
        os.killpg(int((runs / f"{unit['id']}.pid").read_text()), signal.SIGKILL if unit["force"] else signal.SIGTERM)
failed = {}
for unit in asked.get("units", []):
    try: start(unit) if asked["action"] == "start" else stop(unit)
    except Exception as error: failed[unit["id"]] = repr(error)
print(json.dumps(list_() if asked["action"] == "list" else {"failed": failed}))
