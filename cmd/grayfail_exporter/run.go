package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/alecthomas/kingpin/v2"
	"github.com/prometheus/common/version"
	"github.com/prometheus/exporter-toolkit/web"
	"github.com/prometheus/exporter-toolkit/web/kingpinflag"
)

// Exit codes of the contract. Usage errors are 2 for every command.
const (
	exitOK    = 0
	exitFail  = 1
	exitUsage = 2
)

// serveFlags are the flags of serve.
type serveFlags struct {
	configFile     string
	web            *web.FlagConfig
	stateDir       string
	stateInterval  time.Duration
	logLevel       string
	logFormat      string
	record         string
	recordMaxBytes int64
	strata         bool
	sampleInterval time.Duration
	pprof          bool
}

// program is what main gives to the commands beside arguments.
type program struct {
	rights rights
	// tune, where set, is called once by a command that stays.
	tune func()
}

// run is the whole program: it returns the exit code and touches no global.
func (p program) run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	app := kingpin.New("grayfail_exporter",
		"Names the leg that ate a slow inference request's time: a Prometheus exporter and gray-failure detector for distributed LLM inference.")
	app.UsageWriter(stdout).ErrorWriter(stderr)
	terminated := -1 // kingpin answers --help and --version through this
	app.Terminate(func(code int) {
		if terminated < 0 {
			terminated = code
		}
	})
	app.Version(version.Print("grayfail_exporter"))
	app.HelpFlag.Short('h')

	var sf serveFlags
	serveCmd := app.Command("serve", "Watch this host and serve metrics (the default command).").Default()
	addServeFlags(serveCmd, &sf)

	var lf legsFlags
	legsCmd := app.Command("legs", "One look at every leg. Exit: 0 all as expected, 1 a leg is not, 2 could not look.")
	legsCmd.Flag("json", "Print JSON.").BoolVar(&lf.json)
	legsCmd.Flag("wait", "Time between the two looks that show movement.").Default("1s").DurationVar(&lf.wait)
	legsCmd.Flag("config.file", "Configuration file.").StringVar(&lf.configFile)

	var rf replayFlags
	replayCmd := app.Command("replay", "Run the detector over recordings (JSON lines, plain or gzip).")
	replayCmd.Flag("json", "Print JSON: an object for one file, an array for several.").BoolVar(&rf.json)
	replayCmd.Flag("together", "One detector over all files instead of one for each.").BoolVar(&rf.together)
	replayCmd.Arg("file", "Recordings.").Required().StringsVar(&rf.files)

	var pf pushFlags
	pushCmd := app.Command("push", "Pass an engine's output through from standard input, and push the requests found in it. Exit: 1 when some were not taken.")
	pushCmd.Flag("url", "Where to push.").Default("http://127.0.0.1:10550/api/v1/requests").StringVar(&pf.url)
	pushCmd.Flag("model", "The requests' model.").Required().StringVar(&pf.model)

	var cf campaignReportFlags
	campaignCmd := app.Command("campaign", "The field's experiment as a tool: conditions, shuffled blocks of requests, and what they come to.")
	var crf campaignRunFlags
	campaignRun := addCampaignRun(campaignCmd, &crf)
	campaignReport, campaignCompare := addCampaignReports(campaignCmd, &cf)

	var checkFile string
	checkCmd := app.Command("check-config", "Check a configuration file and print every problem with its line.")
	checkCmd.Arg("file", "Configuration file.").Required().StringVar(&checkFile)

	command, err := app.Parse(args)
	if terminated >= 0 {
		return terminated
	}
	if err != nil {
		fmt.Fprintf(stderr, "grayfail_exporter: %v; see grayfail_exporter --help\n", err)
		return exitUsage
	}
	if err := checkFlags(command == serveCmd.FullCommand(), sf, lf); err != nil {
		fmt.Fprintf(stderr, "grayfail_exporter: %v; see grayfail_exporter --help\n", err)
		return exitUsage
	}
	switch command {
	case legsCmd.FullCommand():
		return legsCommand(ctx, lf, stdout, stderr)
	case replayCmd.FullCommand():
		return replayCommand(rf, stdout, stderr)
	case pushCmd.FullCommand():
		return pushCommand(ctx, pf, os.Stdin, stdout, stderr)
	case campaignRun:
		return campaignRunCommand(ctx, crf, stdout, stderr)
	case campaignReport:
		return campaignReportCommand(cf, stdout, stderr)
	case campaignCompare:
		return campaignCompareCommand(cf, stdout, stderr)
	case checkCmd.FullCommand():
		return checkConfigCommand(checkFile, stdout, stderr)
	default:
		return p.serveCommand(ctx, sf, stderr)
	}
}

// checkFlags finds values of the right type that cannot work.
func checkFlags(serve bool, sf serveFlags, lf legsFlags) error {
	switch {
	case serve && sf.sampleInterval < 10*time.Millisecond:
		return fmt.Errorf("--sample.interval=%s: at least 10ms", sf.sampleInterval)
	case serve && sf.stateInterval < 10*time.Millisecond:
		return fmt.Errorf("--state.interval=%s: at least 10ms", sf.stateInterval)
	case serve && sf.recordMaxBytes <= 0:
		return fmt.Errorf("--record.max-bytes=%d: must be more than 0", sf.recordMaxBytes)
	case lf.wait < 0:
		return fmt.Errorf("--wait=%s: must not be negative", lf.wait)
	}
	return nil
}

func addServeFlags(cmd *kingpin.CmdClause, sf *serveFlags) {
	cmd.Flag("config.file", "Configuration file; without it port 50052 is watched in the own namespace.").StringVar(&sf.configFile)
	sf.web = kingpinflag.AddFlags(cmd, ":10550")
	cmd.Flag("state.dir", "Directory for what survives a restart: baselines, open episodes, how far the engine logs were read. Made if missing.").StringVar(&sf.stateDir)
	cmd.Flag("state.interval", "How often baselines and open episodes are saved in --state.dir.").Default("2s").DurationVar(&sf.stateInterval)
	cmd.Flag("log.level", "Lowest level logged: debug, info, warn, error.").Default("info").
		EnumVar(&sf.logLevel, "debug", "info", "warn", "error")
	cmd.Flag("log.format", "Log lines as json or for people (console).").Default("json").
		EnumVar(&sf.logFormat, "json", "console")
	cmd.Flag("record", "Write everything the detector sees to this file, in the format that replay reads; gzip when it ends in .gz.").StringVar(&sf.record)
	cmd.Flag("record.max-bytes", "Stop recording when the file has this size.").Default("1073741824").Int64Var(&sf.recordMaxBytes)
	cmd.Flag("metrics.strata", "Export every stratum of a baseline, not only the model's busiest.").BoolVar(&sf.strata)
	cmd.Flag("sample.interval", "Time between two readings of qdiscs and sockets.").Default("1s").DurationVar(&sf.sampleInterval)
	cmd.Flag("web.pprof", "Serve Go profiles under /debug/pprof/.").BoolVar(&sf.pprof)
}

func checkConfigCommand(path string, stdout, stderr io.Writer) int {
	if _, err := loadConfig(path); err != nil {
		fmt.Fprintln(stderr, err)
		return exitFail
	}
	fmt.Fprintf(stdout, "%s: ok\n", path)
	return exitOK
}
