"""A client of a stint service in its smallest form: it pushes what it wants, starts what it is granted, stops what is
reclaimed, and gives back what is done. Work is only pretended: it takes a second.

    python3 loop.py http://127.0.0.1:7468 /Research 20
"""

import sys
import time

import stint


def main(base, consumer, units, source="example", work=1.0):
    service = stint.Client(base)
    since = service.position(source)  # asked before the demand is given: nothing can happen to it earlier
    service.put_demand(source, [{"consumer": consumer, "allocation": "work", "units": units, "ncpus": 1}])
    done = 0
    while done < units:
        try:
            changes, since = service.changes(source, since, wait=30)
        except stint.Problem as p:
            if p.kind != "compacted":
                raise
            held, since = service.holdings(source)  # changes so old are not kept: what is held now is what runs
            changes = [{**row, "change": "grant"} for row in held]
        back = []
        for c in changes:
            print(f"cycle {c.get('cycle', since)}: {c['change']} of {c['units']} on {c['host']}")
            unit = {k: c[k] for k in ("consumer", "allocation", "sub", "host", "units")}
            if c["change"] == "grant":  # here the work would be started
                back.append({**unit, "done": True})
                done += c["units"]
            elif c["change"] == "reclaim":  # here it would be stopped, by c["deadline"] at the latest
                back.append({**unit, "done": False})
        if back:
            time.sleep(work)
            print(f"{service.release(back)['released']} units given back, {done} of {units} done")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
