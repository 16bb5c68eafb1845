-- Ten questions to a decision log, for DuckDB. Paths are relative to where the log is `log`; what stands in the comment above a
-- question is how `stint query` gives the same figures. A table that has no file yet is an error in DuckDB ("No files found").
--
-- Events (grants, reclaims, releases, inputs) are joined on cycles by cycle: a cycle is there when its row of cycles is. State
-- tables (consumers, amounts, shares, shortfalls) are joined on the cycle that holds: cycles.consumers_cycle and so on.

-- 1 granted: units given to each consumer over the whole log.
-- stint query --log log grants --cycle all
SELECT g.consumer, sum(g.units)::BIGINT AS units
FROM 'log/grants/*/*.parquet' g JOIN 'log/cycles/*/*.parquet' c USING (cycle)
GROUP BY g.consumer ORDER BY g.consumer;

-- 2 held: what each consumer wants, holds and is short of in the last cycle.
-- stint query --log log consumers
SELECT s.plan, s.consumer, s.demand, s.held, s.short
FROM (SELECT * FROM 'log/cycles/*/*.parquet' ORDER BY cycle DESC LIMIT 1) c
JOIN 'log/consumers/*/*.parquet' s ON s.cycle = c.consumers_cycle
ORDER BY ALL;

-- 3 short: why units were short in the cycle in which most were.
-- stint query --log log cycles --cycle all; stint query --log log shortfalls --cycle N
SELECT f.reason, f.dimension, sum(f.units_short)::BIGINT AS units
FROM (SELECT * FROM 'log/cycles/*/*.parquet' ORDER BY units_short DESC, cycle LIMIT 1) c
JOIN 'log/shortfalls/*/*.parquet' f ON f.cycle = c.shortfalls_cycle
GROUP BY ALL ORDER BY ALL;

-- 4 released: units that came back, by cause.
-- stint query --log log releases --cycle all
SELECT r.cause, sum(r.units)::BIGINT AS units, count(*) AS rows
FROM 'log/releases/*/*.parquet' r JOIN 'log/cycles/*/*.parquet' c USING (cycle)
GROUP BY ALL ORDER BY ALL;

-- 5 busy: the five cycles in which most was granted.
-- stint query --log log cycles --cycle all
SELECT cycle, units_granted, units_released, units_held
FROM 'log/cycles/*/*.parquet' ORDER BY units_granted DESC, cycle LIMIT 5;

-- 6 full: how full the hosts were at the last keyframe.
-- stint query --log log hosts
SELECT plan, dimension, sum(used)::BIGINT AS used, sum(capacity)::BIGINT AS capacity
FROM 'log/hosts/*/*.parquet'
WHERE cycle = (SELECT max(cycle) FROM 'log/hosts/*/*.parquet' JOIN 'log/cycles/*/*.parquet' USING (cycle))
GROUP BY ALL ORDER BY ALL;

-- 7 usage: the largest part of a pool that each consumer ever used, and what it deserved then.
-- stint query --log log shares --cycle all
SELECT s.consumer, s.pool, max(s.usage) AS usage, max(s.units_held) AS units_held
FROM (SELECT DISTINCT shares_cycle FROM 'log/cycles/*/*.parquet') c
JOIN 'log/shares/*/*.parquet' s ON s.cycle = c.shares_cycle
GROUP BY ALL ORDER BY ALL;

-- 8 reclaimed: units put under reclaim and cancelled again, by reason.
-- stint query --log log reclaims --cycle all
SELECT r.reason, r.action, sum(r.units)::BIGINT AS units, count(DISTINCT r.reclaim) AS reclaims
FROM 'log/reclaims/*/*.parquet' r JOIN 'log/cycles/*/*.parquet' c USING (cycle)
GROUP BY ALL ORDER BY ALL;

-- 9 where: what is held at the last keyframe, by consumer and what it counts as.
-- stint query --log log holdings
SELECT consumer, origin, sum(units)::BIGINT AS units, count(DISTINCT host) AS hosts
FROM 'log/holdings/*/*.parquet'
WHERE cycle = (SELECT max(cycle) FROM 'log/holdings/*/*.parquet' JOIN 'log/cycles/*/*.parquet' USING (cycle))
GROUP BY ALL ORDER BY ALL;

-- 10 inputs: what the log was decided from. The folder date=… keeps the inputs themselves out.
-- stint query --log log inputs --cycle all
SELECT i.kind, count(*) AS inputs, sum(i.rows)::BIGINT AS rows, sum(i.bytes)::BIGINT AS bytes
FROM 'log/inputs/date=*/*.parquet' i JOIN 'log/cycles/*/*.parquet' c USING (cycle)
GROUP BY ALL ORDER BY ALL;
