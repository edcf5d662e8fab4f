package main

import (
	"errors"
	"time"

	"grayfail/event"
)

// reload reads the configuration again. A file with problems changes nothing:
// the old settings stay and config_last_reload_successful turns 0.
func (s *server) reload() error {
	s.reloading.Lock()
	defer s.reloading.Unlock()
	err := s.applyConfig()
	state := event.ConfigReload{Successful: err == nil, TimeNS: s.reloaded.Load().TimeNS}
	if err == nil {
		state.TimeNS = time.Now().UnixNano()
		s.log.Info().Msg("configuration reloaded")
	} else {
		s.log.Error().Err(err).Msg("configuration not reloaded: the old one stays")
	}
	s.reloaded.Store(&state)
	s.publisher.publish() // who reloads and scrapes at once sees the outcome
	return err
}

func (s *server) applyConfig() error {
	if s.flags.configFile == "" {
		return errors.New("nothing to reload: started without --config.file")
	}
	next, err := loadConfig(s.flags.configFile)
	if err != nil {
		return err
	}
	if next.Detector != s.config().Detector {
		return errors.New("detector: a changed threshold, min_samples, window or max_age takes effect at a restart only; nothing was reloaded")
	}
	if s.rights.gaveAdmin && entersNamespaces(&next) {
		return errors.New("namespaces: there were none at the start, so CAP_SYS_ADMIN, which entering them needs, was given up; they take effect at a restart only; nothing was reloaded")
	}
	if err := s.proxies.apply(next.Requests.Proxies); err != nil {
		return err
	}
	if err := s.otlp.apply(next.Requests.OTLP); err != nil {
		return errors.Join(err, s.proxies.apply(s.config().Requests.Proxies))
	}
	s.logs.apply(next.Requests.LlamaLogs)
	s.sampler.spaces.SetConfig(spacesConfig(&next))
	s.pipe.legs.SetConfig(s.tableConfig(&next, s.sampler.judge))
	s.sampler.rdma.SetQueuePairs(time.Duration(next.RDMA.Interval), !next.RDMA.QueuePairs)
	s.cfg.Store(&next)
	s.requestsStatus()
	return nil
}
