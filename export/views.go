package export

import (
	"bytes"
	_ "embed"
	"os"
	"path/filepath"
)

// viewsName is the file of a log that makes views of its tables in DuckDB.
const viewsName = "views.sql"

//go:embed views.sql
var viewsSQL []byte

// writeViews writes them, unless the log has them as they are now.
func (w *Writer) writeViews() error {
	if w.views {
		return nil
	}
	path := filepath.Join(w.dir, viewsName)
	if has, err := os.ReadFile(path); err != nil || !bytes.Equal(has, viewsSQL) {
		if err := w.disk.write(path, func(to *os.File) error { _, err := to.Write(viewsSQL); return err }); err != nil {
			return err
		}
		if err := w.disk.rename(path); err != nil {
			return err
		}
	}
	w.views = true
	return nil
}
