#!/usr/bin/env python3
# For `stint act --conformance`: makes jobs for hooks.py and cancels them.
import json, pathlib, signal, os, sys, uuid

asked = json.load(sys.stdin)
jobs, work = pathlib.Path("jobs"), asked["work"]
jobs.mkdir(exist_ok=True)
if asked["action"] == "submit":
    work["allocation"] = uuid.uuid4().hex
    new = jobs / ("." + work["allocation"])
    new.write_text(json.dumps({"consumer": work["consumer"], "command": f"sleep {work['seconds']}"}))
    new.rename(jobs / work["allocation"])
else:
    (jobs / work["allocation"]).unlink(missing_ok=True)
    for run in pathlib.Path("runs").glob("*.json"):
        if json.loads(run.read_text() or "{}").get("allocation") == work["allocation"]:
            try:
                os.killpg(int(run.with_suffix(".pid").read_text()), signal.SIGKILL)
            except (ProcessLookupError, FileNotFoundError):
                pass
print(json.dumps(work if asked["action"] == "submit" else {}))
