package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stintd/stint/export"
	"github.com/stintd/stint/ingest/bucket"
)

// inBucket begins the name of a log that lies in a bucket: of the prefix where a cluster keeps its journal.
const inBucket = "s3://"

// logHelp tells of the logs that are read.
const logHelp = "folder of the log, or s3://bucket/prefix of a cluster"

// openLog opens a decision log for reading, that of a folder or of a cluster.
func openLog(log string) (*export.Reader, error) {
	if !strings.HasPrefix(log, inBucket) {
		return export.OpenLog(log)
	}
	l, err := bucketLog(context.Background(), log)
	if err != nil {
		return nil, err
	}
	if l.View().Last() == 0 {
		return nil, fmt.Errorf("log %s: no decision log: the cluster has written none yet", log)
	}
	return export.OpenFiles(l, l.Name())
}

// openLogMax is how long a bucket may take to tell what it has.
const openLogMax = time.Minute

// bucketLog opens the decision log of a cluster. Where the store is, and the credentials, come from the environment, as
// S3Options say.
func bucketLog(ctx context.Context, log string) (*bucket.Log, error) {
	objects, err := bucket.NewS3(bucket.S3Options{URL: log})
	if err != nil {
		return nil, fmt.Errorf("log %s: %w", unsaid(log), err)
	}
	ctx, cancel := context.WithTimeout(ctx, openLogMax)
	defer cancel()
	l, err := bucket.OpenLog(ctx, objects)
	if err != nil && !errors.Is(err, bucket.ErrNoLog) {
		err = fmt.Errorf("%w (asked of %s)", err, objects.Endpoint())
	}
	if err != nil {
		return nil, fmt.Errorf("log %w", err)
	}
	return l, nil
}

// onlyFolder refuses a log in a bucket where one is written.
func onlyFolder(flag, log string) error {
	if strings.HasPrefix(log, inBucket) {
		return fmt.Errorf("%s %s: must be a folder; the log of a cluster is written by its processes alone", flag,
			unsaid(log))
	}
	return nil
}
