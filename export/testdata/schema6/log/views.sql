-- Views of this decision log for DuckDB, one for each table, written by stint with the log. They have the rows of published cycles
-- alone, each once, whatever compaction is doing; consumers, amounts, shares, shortfalls, loans, sub_allocations and attributes have
-- their rows of every cycle, also of those in which nothing of them was written because nothing had changed. So a query needs no
-- rule of how the files are kept. Figures of cycles and of events are of their cycle, and add up over cycles; those of consumers are
-- what is true after a cycle, and add up over leaves: unit_seconds_lost there is all that was lost so far.
--
--     cd LOG && duckdb -init views.sql
--     SELECT consumer, held, short FROM consumers WHERE leaf AND cycle = (SELECT max(cycle) FROM cycles);
--
-- From elsewhere: SET file_search_path = 'LOG'; .read LOG/views.sql

-- The rows of a folder, with the range of cycles of their file.
CREATE OR REPLACE MACRO log_rows(folder) AS TABLE
    SELECT * EXCLUDE (filename), regexp_extract(filename, 'cycles-([0-9]{12}-[0-9]{12})[.]parquet$', 1) AS log_file
    FROM read_parquet(folder || '/*/*.parquet', filename = true, union_by_name = true);

-- Published cycles. Of files that have the same cycle the longest counts; compaction has replaced the others.
-- Columns that have another name in logs of the first schema are joined here and below.
CREATE OR REPLACE VIEW log_cycles AS
    SELECT * EXCLUDE ("window") REPLACE (coalesce(time_window, "window") AS time_window)
    FROM (FROM log_rows('cycles')
        UNION ALL BY NAME
        SELECT NULL::VARCHAR AS time_window, NULL::VARCHAR AS "window", NULL::BIGINT AS standing_cycle, NULL::DOUBLE AS unit_seconds_lost WHERE false)
    QUALIFY row_number() OVER (PARTITION BY cycle ORDER BY split_part(log_file, '-', 1), split_part(log_file, '-', 2) DESC) = 1;

CREATE OR REPLACE VIEW cycles AS
    SELECT * EXCLUDE (log_file) FROM log_cycles;

-- Events: what happened in a cycle.
CREATE OR REPLACE VIEW grants AS
    SELECT c.cycle, c.now, r.* EXCLUDE (cycle, log_file) FROM log_rows('grants') r JOIN log_cycles c USING (cycle, log_file);
CREATE OR REPLACE VIEW reclaims AS
    SELECT c.cycle, c.now, r.* EXCLUDE (cycle, log_file) FROM log_rows('reclaims') r JOIN log_cycles c USING (cycle, log_file);
CREATE OR REPLACE VIEW releases AS
    SELECT c.cycle, c.now, r.* EXCLUDE (cycle, log_file)
    FROM (FROM log_rows('releases') UNION ALL BY NAME SELECT NULL::DOUBLE AS unit_seconds_lost WHERE false) r
    JOIN log_cycles c USING (cycle, log_file);
CREATE OR REPLACE VIEW ownership AS
    SELECT c.cycle, c.now, r.* EXCLUDE (cycle, log_file) FROM log_rows('ownership') r JOIN log_cycles c USING (cycle, log_file);
CREATE OR REPLACE VIEW plans AS
    SELECT c.cycle, c.now, r.* EXCLUDE (cycle, log_file) FROM log_rows('plans') r JOIN log_cycles c USING (cycle, log_file);
CREATE OR REPLACE VIEW inputs AS
    SELECT c.cycle, c.now, r.* EXCLUDE (cycle, log_file)
    FROM (FROM log_rows('inputs') UNION ALL BY NAME SELECT NULL::VARCHAR AS author WHERE false) r JOIN log_cycles c USING (cycle, log_file);

-- State: what is true after a cycle. cycles.*_cycle names the cycle w that wrote it last.
CREATE OR REPLACE VIEW consumers AS
    WITH r AS (
        FROM log_rows('consumers')
        UNION ALL BY NAME
        SELECT NULL::VARCHAR AS parent, NULL::BIGINT AS depth, NULL::BIGINT AS leaf, NULL::BIGINT AS slot_limit, NULL::BIGINT AS "limit",
            NULL::DOUBLE AS unit_seconds_lost, NULL::BIGINT AS budget, NULL::VARCHAR AS budget_dimension,
            NULL::DOUBLE AS budget_used WHERE false
    ), branches AS (
        SELECT DISTINCT cycle, log_file, plan, regexp_replace(consumer, '/[^/]*$', '') AS consumer FROM r WHERE leaf IS NULL
    )
    SELECT c.cycle, c.now, r.* EXCLUDE (cycle, log_file, "limit") REPLACE (
        coalesce(r.parent, nullif(regexp_replace(r.consumer, '/[^/]*$', ''), '')) AS parent,
        coalesce(r.depth, length(r.consumer) - length(replace(r.consumer, '/', ''))) AS depth,
        coalesce(r.leaf = 1, b.consumer IS NULL) AS leaf,
        coalesce(r.slot_limit, r."limit") AS slot_limit)
    FROM log_cycles c JOIN log_cycles w ON w.cycle = c.consumers_cycle
    JOIN r ON r.cycle = w.cycle AND r.log_file = w.log_file
    LEFT JOIN branches b ON b.cycle = r.cycle AND b.log_file = r.log_file AND b.plan = r.plan AND b.consumer = r.consumer;
CREATE OR REPLACE VIEW amounts AS
    SELECT c.cycle, c.now, r.* EXCLUDE (cycle, log_file, "limit") REPLACE (coalesce(r.share_limit, r."limit") AS share_limit)
    FROM log_cycles c JOIN log_cycles w ON w.cycle = c.consumers_cycle
    JOIN (FROM log_rows('amounts') UNION ALL BY NAME SELECT NULL::BIGINT AS share_limit, NULL::BIGINT AS "limit" WHERE false) r
        ON r.cycle = w.cycle AND r.log_file = w.log_file;
CREATE OR REPLACE VIEW shares AS
    SELECT c.cycle, c.now, r.* EXCLUDE (cycle, log_file)
    FROM log_cycles c JOIN log_cycles w ON w.cycle = c.shares_cycle
    JOIN log_rows('shares') r ON r.cycle = w.cycle AND r.log_file = w.log_file;
CREATE OR REPLACE VIEW shortfalls AS
    SELECT c.cycle, c.now, r.* EXCLUDE (cycle, log_file)
    FROM log_cycles c JOIN log_cycles w ON w.cycle = c.shortfalls_cycle
    JOIN log_rows('shortfalls') r ON r.cycle = w.cycle AND r.log_file = w.log_file;

-- What stands: rows of what changed since all was written, in the cycle that cycles.standing_cycle names. Of the rows of one key the
-- latest counts, unless it says that this is gone. Cycles of logs before the fourth schema have no rows.
CREATE OR REPLACE MACRO log_standing(folder) AS TABLE
    SELECT c.cycle, c.now, r.* EXCLUDE (cycle, log_file), w.cycle AS log_cycle
    FROM log_cycles c JOIN log_cycles w ON w.standing_cycle = c.standing_cycle AND w.cycle <= c.cycle
    JOIN log_rows(folder) r ON r.cycle = w.cycle AND r.log_file = w.log_file
    WHERE c.standing_cycle > 0;
CREATE OR REPLACE VIEW loans AS
    SELECT * EXCLUDE (log_cycle)
    FROM (FROM log_standing('loans')
        QUALIFY row_number() OVER (PARTITION BY cycle, plan, lender, borrower, pool ORDER BY log_cycle DESC) = 1)
    WHERE units > 0;
CREATE OR REPLACE VIEW sub_allocations AS
    SELECT * EXCLUDE (log_cycle) REPLACE (coalesce(min_units, 1) AS min_units)
    FROM (FROM (FROM log_standing('sub_allocations') UNION ALL BY NAME SELECT NULL::BIGINT AS min_units WHERE false)
        QUALIFY row_number() OVER (PARTITION BY cycle, plan, source, consumer, allocation, sub, first_seen ORDER BY log_cycle DESC) = 1)
    WHERE wanted IS NOT NULL;
CREATE OR REPLACE VIEW attributes AS
    SELECT * EXCLUDE (log_cycle)
    FROM (FROM log_standing('attributes') QUALIFY rank() OVER (PARTITION BY cycle, host ORDER BY log_cycle DESC) = 1)
    WHERE attribute IS NOT NULL;

-- Keyframes: what is true after the cycles that have one, the first of each day among them.
CREATE OR REPLACE VIEW holdings AS
    SELECT c.cycle, c.now, r.* EXCLUDE (cycle, log_file) FROM log_rows('holdings') r JOIN log_cycles c USING (cycle, log_file);
CREATE OR REPLACE VIEW hosts AS
    SELECT c.cycle, c.now, r.* EXCLUDE (cycle, log_file) FROM log_rows('hosts') r JOIN log_cycles c USING (cycle, log_file);
CREATE OR REPLACE VIEW owners AS
    SELECT c.cycle, c.now, r.* EXCLUDE (cycle, log_file) FROM log_rows('owners') r JOIN log_cycles c USING (cycle, log_file);
