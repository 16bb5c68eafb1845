package server

import (
	"io/fs"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stintd/stint/core/engine"
	"github.com/stintd/stint/core/journal"
)

// attach adds the figures that are read off a server when they are asked for.
func (m *Metrics) attach(s *Server) {
	m.registry.MustRegister(buildInfo(s.o.Version))
	m.attachServer(s)
	if len(s.o.Divisions) > 0 && s.o.Division == "" {
		return // its divisions have the rest
	}
	m.registry.MustRegister(newFigures(s, m.level))
	m.attachEngine(s)
	m.attachCluster(s)
	m.attachDisk(s)
}

// gauge adds a figure that a function reads.
func (m *Metrics) gauge(name, help string, value func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

// flag adds a figure that is 1 or 0.
func (m *Metrics) flag(name, help string, value func() bool) {
	m.gauge(name, help, func() float64 { return oneIf(value()) })
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

func (m *Metrics) attachServer(s *Server) {
	m.gauge("stint_connections", "Connections open.", func() float64 {
		return float64(s.http.GetOpenConnectionsCount())
	})
	m.gauge("stint_queue_decodes", "Bodies waiting to be decoded.", func() float64 {
		return float64(s.decodes.waits())
	})
	m.gauge("stint_queue_waiters", "Long polls waiting.", func() float64 { return float64(s.waiters.inUse()) })
	m.gauge("stint_body_memory_bytes", "Memory of bodies being received and decoded.",
		func() float64 { return float64(s.bodies.inUse()) })
	m.gauge("stint_decode_memory_bytes", "Memory of tables and policy files being decoded.",
		func() float64 { return float64(s.decoded.inUse() + s.checks.inUse()) })
	m.gauge("stint_answer_memory_bytes", "Memory of answers under way.",
		func() float64 { return float64(s.answers.inUse()) })
}

// attachEngine adds what the engine says of itself. All is 0 while there is none.
func (m *Metrics) attachEngine(s *Server) {
	stat := func(name, help string, of func(engine.Stats) float64) {
		m.gauge(name, help, func() float64 {
			e := s.engine.Load()
			if e == nil {
				return 0
			}
			return of(e.Stats())
		})
	}
	m.flag("stint_ready", "Whether input is taken and cycles run.", func() bool {
		e := s.engine.Load()
		return e != nil && e.Unready() == "" && s.apart() == ""
	})
	m.gauge("stint_cycle_interval_seconds",
		"Time between two cycles; 0: they run on request alone, or there is no policy.",
		func() float64 {
			e := s.engine.Load()
			if e == nil {
				return 0
			}
			return e.Interval().Seconds()
		})
	stat("stint_queue_inputs", "Inputs waiting for the engine.", func(s engine.Stats) float64 {
		return float64(s.Queue)
	})
	stat("stint_engine_busy_seconds", "How long the engine has been at what it does now; 0 when it waits.",
		func(s engine.Stats) float64 { return s.Busy.Seconds() })
	stat("stint_clock_behind_seconds", "How far the clock is behind the time of the last cycle or input.",
		func(s engine.Stats) float64 { return s.ClockBehind.Seconds() })
	stat("stint_log_behind_cycles", "Cycles that are not in the decision log yet.",
		func(s engine.Stats) float64 { return float64(s.LogBehind) })
	stat("stint_log_lost", "Whether the decision log gets its missing cycles at the next start only.",
		func(s engine.Stats) float64 { return oneIf(s.LogLost) })
	stat("stint_journal_bytes", "Bytes of the journal.", func(s engine.Stats) float64 { return float64(s.Journal) })
	stat("stint_checkpoint_cycle", "Cycle of the last checkpoint since the start.",
		func(s engine.Stats) float64 { return float64(s.Checkpoint.Cycle) })
	stat("stint_checkpoint_bytes", "Bytes of the last checkpoint.",
		func(s engine.Stats) float64 { return float64(s.Checkpoint.Bytes) })
	stat("stint_checkpoint_held_seconds", "How long the last checkpoint kept input and cycles waiting.",
		func(s engine.Stats) float64 { return s.Checkpoint.Held.Seconds() })
	stat("stint_checkpoint_duration_seconds", "How long the last checkpoint took in all.",
		func(s engine.Stats) float64 { return s.Checkpoint.Took.Seconds() })
	stat("stint_checkpoint_failed", "Whether the last checkpoint failed.",
		func(s engine.Stats) float64 { return oneIf(s.Checkpoint.Why != "") })
}

// attachCluster adds what a process says of those that share its journal. One that is alone leads.
func (m *Metrics) attachCluster(s *Server) {
	flag := func(name, help string, alone bool, value func(*engine.Engine, journal.Shared) bool) {
		m.flag(name, help, func() bool {
			e, j := s.engine.Load(), s.member()
			if e == nil || j == nil {
				return e != nil && alone
			}
			return value(e, j)
		})
	}
	flag("stint_leads", "Whether this process leads, as one does that has its journal for itself.", true,
		func(e *engine.Engine, _ journal.Shared) bool { return s.rejoins.Load() == nil && !e.Following() })
	flag("stint_leader_known", "Whether a process is known to lead.", true,
		func(_ *engine.Engine, j journal.Shared) bool { return j.Leader().Name != "" })
	flag("stint_bucket_trouble", "Whether the bucket of the cluster cannot be read.", false,
		func(_ *engine.Engine, j journal.Shared) bool { return j.Trouble() != "" })
	flag("stint_differs", "Whether this process decided otherwise than the leader.", false,
		func(e *engine.Engine, _ journal.Shared) bool { return e.Stats().Differs != "" })
	m.gauge("stint_term", "The term of the cluster's leader.", func() float64 {
		j := s.member()
		if j == nil {
			return 0
		}
		return float64(j.Leader().Term)
	})
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "stint_digests_compared_total", Help: "Cycles of a leader that this process decided to the same digest.",
	}, func() float64 {
		e := s.engine.Load()
		if e == nil {
			return 0
		}
		return float64(e.Stats().Compared)
	}))
}

// attachDisk adds what the service's folder takes and has left. Without a folder all is 0.
func (m *Metrics) attachDisk(s *Server) {
	log := &measuredFolder{path: s.o.LogDir}
	m.gauge("stint_log_bytes", "Bytes of the decision log, at most a minute ago.", log.bytes)
	m.gauge("stint_journal_limit_bytes", "Bytes of the journal past which no input is taken; 0: none is known.",
		func() float64 { return float64(s.o.JournalBytesMax) })
	m.gauge("stint_disk_available_bytes", "Bytes that the service may still write to the disk of its folder.",
		func() float64 { available, _ := disk(s.o.Dir); return available })
	m.gauge("stint_disk_size_bytes", "Bytes that the disk of the service's folder has in all.",
		func() float64 { _, size := disk(s.o.Dir); return size })
}

// disk is how many bytes the disk of a folder has left for the service, and in all.
func disk(dir string) (available, size float64) {
	var st syscall.Statfs_t
	if dir == "" || syscall.Statfs(dir, &st) != nil {
		return 0, 0
	}
	block := float64(st.Bsize)
	return float64(st.Bavail) * block, float64(st.Blocks) * block
}

// measureEvery is how often the files of a folder are counted at most.
const measureEvery = time.Minute

// measuredFolder is a folder whose size is asked for. Counting its files may take a while, so it is done beside who
// asks, who gets the last figure, 0 before the first.
type measuredFolder struct {
	path string

	mu      sync.Mutex
	size    int64
	at      time.Time // when it was counted last
	counted chan struct{}
}

// bytes is the folder's size.
func (f *measuredFolder) bytes() float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.path == "" {
		return 0
	}
	idle := f.counted == nil
	if !idle {
		select {
		case <-f.counted:
			idle = true
		default:
		}
	}
	if idle && time.Since(f.at) >= measureEvery {
		f.counted = make(chan struct{})
		go f.count(f.counted)
	}
	return float64(f.size)
}

// count adds up the files. Those that go meanwhile count for nothing.
func (f *measuredFolder) count(done chan struct{}) {
	defer close(done)
	var size int64
	_ = filepath.WalkDir(f.path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		if info, err := d.Info(); err == nil {
			size += info.Size()
		}
		return nil
	})
	f.mu.Lock()
	defer f.mu.Unlock()
	f.size, f.at = size, time.Now()
}
