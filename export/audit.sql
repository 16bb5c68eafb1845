-- The view audit of this log's table of calls for DuckDB, written by stint with the table. It has each row once, also while files
-- are put together.
--
--     cd LOG && duckdb -c ".read audit.sql" -c "SELECT minute, caller, revision FROM audit WHERE call = 'PUT /v1/plan' AND status = 200;"
--
-- From elsewhere: SET file_search_path = 'LOG'; .read LOG/audit.sql

CREATE OR REPLACE VIEW audit AS
    SELECT * EXCLUDE (filename, batches)
    FROM (SELECT *, regexp_extract(filename, 'batches-([0-9]{12}-[0-9]{12})[.]parquet$', 1) AS batches
        FROM read_parquet('audit/*/*.parquet', filename = true, union_by_name = true))
    -- A longer file that a merge has published counts in place of those of which it was made.
    QUALIFY batches = first_value(batches) OVER (PARTITION BY batch ORDER BY split_part(batches, '-', 1), split_part(batches, '-', 2) DESC);
