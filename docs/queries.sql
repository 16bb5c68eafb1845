-- Thirteen questions to a decision log, for DuckDB, by the views that the log brings along. First:
--
--     SET file_search_path = 'log';
--     .read log/views.sql
--
-- What stands in the comment above a question is how `stint query` gives the same figures.

-- 1 granted: units given to each consumer over the whole log.
-- stint query --log log grants --cycle all
SELECT consumer, sum(units)::BIGINT AS units
FROM grants GROUP BY consumer ORDER BY consumer;

-- 2 held: what each consumer wants, holds and is short of in the last cycle. Leaves alone: those above them hold the sums.
-- stint query --log log consumers
SELECT plan, consumer, demand, held, short
FROM consumers WHERE leaf AND cycle = (SELECT max(cycle) FROM cycles)
ORDER BY ALL;

-- 3 short: why units were short in the cycle in which most were.
-- stint query --log log cycles --cycle all; stint query --log log shortfalls --cycle N
SELECT reason, dimension, sum(units_short)::BIGINT AS units
FROM shortfalls WHERE cycle = (SELECT cycle FROM cycles ORDER BY units_short DESC, cycle LIMIT 1)
GROUP BY ALL ORDER BY ALL;

-- 4 released: units that came back, by cause.
-- stint query --log log releases --cycle all
SELECT cause, sum(units)::BIGINT AS units, count(*) AS rows
FROM releases GROUP BY ALL ORDER BY ALL;

-- 5 busy: the five cycles in which most was granted.
-- stint query --log log cycles --cycle all
SELECT cycle, units_granted, units_released, units_held
FROM cycles ORDER BY units_granted DESC, cycle LIMIT 5;

-- 6 full: how full the hosts were at the last keyframe.
-- stint query --log log hosts
SELECT plan, dimension, sum(used)::BIGINT AS used, sum(capacity)::BIGINT AS capacity
FROM hosts WHERE cycle = (SELECT max(cycle) FROM hosts)
GROUP BY ALL ORDER BY ALL;

-- 7 usage: the largest part of a pool that each consumer ever used, and the most units that it held of it.
-- stint query --log log shares --cycle all
SELECT consumer, pool, max(usage) AS usage, max(units_held) AS units_held
FROM shares GROUP BY ALL ORDER BY ALL;

-- 8 reclaimed: units put under reclaim and cancelled again, by reason.
-- stint query --log log reclaims --cycle all
SELECT reason, action, sum(units)::BIGINT AS units, count(DISTINCT reclaim) AS reclaims
FROM reclaims GROUP BY ALL ORDER BY ALL;

-- 9 where: what is held at the last keyframe, by consumer and what it counts as.
-- stint query --log log holdings
SELECT consumer, origin, sum(units)::BIGINT AS units, count(DISTINCT host) AS hosts
FROM holdings WHERE cycle = (SELECT max(cycle) FROM hosts)
GROUP BY ALL ORDER BY ALL;

-- 10 inputs: what the log was decided from, and who gave it.
-- stint query --log log inputs --cycle all
SELECT kind, author, count(*) AS inputs, sum(rows)::BIGINT AS rows, sum(bytes)::BIGINT AS bytes
FROM inputs GROUP BY ALL ORDER BY ALL;

-- 11 lent: what each owner has lent to whom in the last cycle, and how much of it is being taken back.
-- stint query --log log loans
SELECT plan, lender, borrower, sum(units)::BIGINT AS units, sum(under_recall)::BIGINT AS under_recall
FROM loans WHERE cycle = (SELECT max(cycle) FROM cycles)
GROUP BY ALL ORDER BY ALL;

-- 12 waiting: the sub-allocations that lack most in the last cycle, with what they require and since when they ask.
-- stint query --log log sub_allocations
SELECT consumer, allocation, sub, wanted - held AS lacking, requirement, first_seen
FROM sub_allocations WHERE cycle = (SELECT max(cycle) FROM cycles) AND wanted > held
ORDER BY lacking DESC, consumer, allocation, sub LIMIT 5;

-- 13 lost: work that reclaims stopped before its end, by consumer, and how many units that was.
-- stint query --log log releases --cycle all
SELECT consumer, sum(unit_seconds_lost) AS unit_seconds_lost, sum(units)::BIGINT AS units
FROM releases WHERE unit_seconds_lost > 0
GROUP BY ALL ORDER BY ALL;

-- 14 gangs: the gangs that wait in the last cycle, with how many of the units that must start together would fit, and
-- the reason of the next one.
-- stint query --log log shortfalls --where reason=gang
SELECT consumer, allocation, sub, units_short, regexp_extract(detail, '^([0-9]+) of', 1)::BIGINT AS fit,
    regexp_extract(detail, '^[0-9]+ of ([0-9]+) units', 1)::BIGINT AS needed, regexp_extract(detail, 'the next one: ([a-z_]+)', 1) AS next
FROM shortfalls WHERE cycle = (SELECT max(cycle) FROM cycles) AND reason = 'gang'
ORDER BY consumer, allocation, sub;
