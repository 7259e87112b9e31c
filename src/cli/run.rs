//! `exitfetch run`: both lists in, everything resolved, one run, its summary and exit code.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::args::{RunArgs, SummaryForm};
use super::config::Config;
use super::descriptors::{self, Room};
use super::ends::{Code, Stopped, code, end_here, ended_before};
use super::fleet::{Fleet, FleetConfig, PerExit, unknown_names};
use super::hints::{self, Lists};
use super::layers::Source;
use super::probed::{self, Probed};
use super::values::Span;
use super::{Meant, dry_run, lists, logging, metrics, settings, stdout};
use crate::engine::{self, End, Ended, Plan, Signals, StatusRequests, Stored};
use crate::fetch::{Conns, Fetcher};
use crate::input::{ListSource, Urls, urls};
use crate::model::{Clock, counted};
use crate::report::{Metrics, Progress, ProgressMode, Screen, Summary, write_files};
use crate::schedule::{Rules, Scheduler};
use crate::store::{FailedBefore, OpenOptions, ResultsCopy, Store};
use crate::threads;

/// Shown under `run --help`.
pub(super) const EXAMPLES: &str = "\
DUR: 10s, 1m30s, 250ms. SIZE: 200000, 1MB, 256MiB. R: a number per second, or /m, /h.

Examples:
  exitfetch run --exits exits.txt --urls urls.txt --per-exit 3
  zcat urls.gz | exitfetch run --exits exits.txt --urls - --results - | jq .status
  exitfetch run --exits exits.txt --urls urls.csv --rate 30/m --out pages --dry-run

Keep secrets out of the command line, where other users can see them: write exits and
headers into files, or logins as ${VAR} into the exit list.

Exit status: 0 all ok, 1 local failure, 2 usage, 3 some failed or refused, 4 no usable
exit left, 5 --max-time reached, 130 or 143 interrupted, 141 reader of --results gone.
The same command again resumes: what is ok is not fetched twice.

Every flag but --print-config can also be a variable (EXITFETCH_PER_EXIT=3), and all but
that and --config a key of [run] in the settings file (per_exit = 3). A flag wins over the
variable, the variable over the file; headers are merged, for each name in the same order.";

pub(super) fn run(meant: Meant) -> Result<Code, Stopped> {
    let Meant {
        args,
        config,
        resolved,
        ..
    } = meant;
    let per_exit = match resolved.source("per_exit") {
        Source::Default => PerExit::Default(args.per_exit),
        Source::File(_) | Source::Environment(_) | Source::Flag => PerExit::Given(args.per_exit),
    };
    let clock = engine::start_clock();
    let progress =
        Progress::new(progress_mode(&args), Screen::of_stderr()).map_err(Stopped::local)?;
    logging::start(&args, &progress);
    let runtime = threads::event_loop().map_err(Stopped::local)?;
    let job = Job {
        args,
        config,
        per_exit,
        clock,
    };
    let code = runtime.block_on(job.run(progress));
    // A read of standard input that still blocks cannot be cancelled, only left behind.
    runtime.shutdown_background();
    code
}

/// The main job inside a program that has a runtime and no settings file.
pub(super) async fn run_here(args: RunArgs, clock: Clock) -> Result<Code, Stopped> {
    let progress =
        Progress::new(progress_mode(&args), Screen::of_stderr()).map_err(Stopped::local)?;
    let job = Job {
        per_exit: PerExit::Given(args.per_exit),
        args,
        config: Config::default(),
        clock,
    };
    job.run(progress).await
}

/// A live line and records would overwrite each other on one terminal.
fn progress_mode(args: &RunArgs) -> ProgressMode {
    let records_here = args.results.as_deref() == Some("-")
        && std::io::IsTerminal::is_terminal(&std::io::stdout());
    match args.progress {
        ProgressMode::Auto if args.quiet || records_here => ProgressMode::Never,
        mode => mode,
    }
}

struct Job {
    args: RunArgs,
    config: Config,
    per_exit: PerExit,
    clock: Clock,
}

impl Job {
    async fn run(self, progress: Progress) -> Result<Code, Stopped> {
        let status = StatusRequests::catch().map_err(Stopped::local)?;
        let (exit_list, url_list) = lists::both(&self.args).map_err(Stopped::usage)?;
        let (exit_list_name, list) = (exit_list.to_string(), url_list.to_string());
        let (fleet, variables) = self.fleet(exit_list).await?;
        let room =
            descriptors::room(self.args.max_in_flight, fleet.slots()).map_err(Stopped::local)?;
        let rules = settings::rules(&self.args, &self.config.origins, room.in_flight);
        let options = settings::fetch(&self.args, &self.config.origins).map_err(Stopped::usage)?;
        let fetcher =
            Fetcher::new(options, fleet.exits.clone(), self.clock).map_err(Stopped::usage)?;
        if self.args.connection.insecure {
            tracing::warn!(
                "--insecure: no certificate is verified; anybody in between can read and change what is fetched"
            );
        }
        let mut urls = urls::spawn(url_list, self.args.urls_format).map_err(Stopped::local)?;
        let mut signals = Signals::catch(end_here).map_err(Stopped::local)?;
        let max_time = tokio::select! {
            max_time = self.begin(&mut urls) => max_time.map_err(Stopped::usage)?,
            ended = signals.next() => {
                return Err(ended_before(&ended, "the first URL of the list came"));
            }
        };
        if self.args.dry_run {
            return tokio::select! {
                shown = dry_run::show(urls, &list, &rules, &fleet) => shown,
                ended = signals.next() => Err(ended_before(&ended, "the URL list was read")),
            };
        }
        let metrics = metrics::serve(self.args.metrics).await;
        let metrics = metrics.map_err(Stopped::local)?;
        let store = self.store().map_err(Stopped::local)?;
        let copy = self.copy(&store).map_err(Stopped::local)?;
        let probed = fleet.probed.clone();
        if let Some(used) = &probed {
            probed::keep(used, store.dir());
        }
        let lists = Lists {
            exit_list: exit_list_name,
            url_list: list.clone(),
            exits: Arc::clone(&fleet.exits),
            variables,
        };
        let plan = self.plan(Parts {
            fleet,
            room,
            rules,
            fetcher,
            urls,
            list,
            store,
            copy,
            max_time,
            progress,
            metrics,
            signals,
            status,
        });
        let mut end = engine::run(plan).await;
        end.summary.probe = probed;
        self.conclude(end, &lists)
    }

    /// Waits for the first entry, though no longer than the run may take. Answers what is left
    /// of that time.
    async fn begin(&self, urls: &mut Urls) -> anyhow::Result<Option<Duration>> {
        let Some(Span(max_time)) = self.args.max_time else {
            urls.begin().await?;
            return Ok(None);
        };
        let start = self.clock.now();
        match tokio::time::timeout(max_time, urls.begin()).await {
            Ok(begun) => begun?,
            // Nothing came: the run ends at once, with its summary.
            Err(_) => return Ok(Some(Duration::ZERO)),
        }
        Ok(Some(max_time.saturating_sub(self.clock.now() - start)))
    }

    async fn fleet(&self, source: ListSource) -> Result<(Fleet, Variables), Stopped> {
        let name = source.to_string();
        let probed = if self.args.no_probe_file {
            Probed::default()
        } else {
            Probed::beside(&source, self.clock.unix(self.clock.now()))
        };
        let warn = |warning: &str| tracing::warn!("{warning}");
        let list = lists::exits(source, warn).await?;
        if list.duplicates > 0 {
            tracing::info!("{name}: {} listed again, used once each", list.duplicates);
        }
        let per_exit = self.per_exit;
        let config = FleetConfig {
            tiers: &self.config.tiers,
            groups: &self.config.groups,
            probed: &probed,
        };
        for unknown in unknown_names(&list.exits, per_exit, &config) {
            tracing::warn!("{name}: {unknown}");
        }
        let fleet = Fleet::new(list.exits, per_exit, &config);
        if let Some(used) = &fleet.probed {
            probed::tell(used);
        }
        Ok((fleet, list.variables))
    }

    fn store(&self) -> anyhow::Result<Store> {
        let mut store = Store::open(
            &self.args.out,
            OpenOptions {
                fresh: self.args.fresh,
                failed_before: if self.args.no_retry_failed {
                    FailedBefore::LeaveAlone
                } else {
                    FailedBefore::TryAgain
                },
                min_free: self.args.min_free.0,
                name_template: self.args.name_template.clone(),
                warc: self.args.archive(),
                clock: self.clock,
            },
        )?;
        if self.args.refresh {
            store.journal.begin_refresh()?;
        }
        if let Some(backup) = &store.backup {
            tracing::info!("--fresh: the old journal is {} now", backup.display());
        }
        let loaded = store.journal.loaded();
        if loaded.malformed > 0 {
            tracing::warn!(
                "{}: {} passed over",
                store.dir().join("results.jsonl").display(),
                counted(
                    loaded.malformed,
                    "line is no record and was",
                    "lines are no records and were"
                )
            );
        }
        Ok(store)
    }

    fn copy(&self, store: &Store) -> anyhow::Result<Option<ResultsCopy>> {
        let journal = store.dir().join("results.jsonl");
        let target = self.args.results.as_deref();
        target
            .map(|target| ResultsCopy::open(target, &journal))
            .transpose()
    }

    fn plan(&self, parts: Parts) -> Plan {
        let fleet = parts.fleet;
        let slots = fleet.slots();
        let caps: Vec<u32> = fleet.groups.iter().map(|(_, cap)| *cap).collect();
        Plan {
            clock: self.clock,
            scheduler: Scheduler::new(parts.rules, &fleet.seats, &caps),
            conns: Conns::new(&fleet.conns, parts.room.idle),
            slots,
            exits: fleet.exits,
            groups: fleet.groups,
            fetcher: parts.fetcher,
            accept: self.args.accept.clone(),
            max_redirects: self.args.max_redirects,
            urls: parts.urls,
            list: parts.list,
            store: parts.store,
            stored: if self.args.refresh {
                Stored::AskedAgain
            } else {
                Stored::Done
            },
            copy: parts.copy,
            max_time: parts.max_time,
            progress: parts.progress,
            metrics: parts.metrics,
            signals: parts.signals,
            status: parts.status,
        }
    }

    /// Files, summary, exit code.
    fn conclude(&self, end: End, lists: &Lists) -> Result<Code, Stopped> {
        let End { ended, summary } = end;
        let written = write_files(&summary, Path::new(&self.args.out));
        let shown = self.show(&summary);
        hints::show(&self.args, &summary, lists);
        let code = code(&ended, &summary);
        if let Ended::Local(error) = ended {
            return Err(Stopped::local(error));
        }
        written.map_err(Stopped::local)?;
        shown.map_err(Stopped::local)?;
        Ok(code)
    }

    fn show(&self, summary: &Summary) -> anyhow::Result<()> {
        if summary.totals.entries == 0 {
            logging::say("note: the URL list is empty, so there was nothing to do");
        }
        let text = match self.args.summary {
            SummaryForm::Table => summary.table(),
            SummaryForm::Json => summary.json()?,
            SummaryForm::Csv => summary.csv()?,
            SummaryForm::None => return Ok(()),
        };
        if self.args.results.as_deref() == Some("-") {
            logging::say(text.trim_end());
            return Ok(());
        }
        stdout::print(&text)
    }
}

/// Variables that logins come from, by line of the exit list.
type Variables = BTreeMap<u64, Arc<str>>;

struct Parts {
    fleet: Fleet,
    room: Room,
    rules: Rules,
    fetcher: Fetcher,
    urls: Urls,
    list: String,
    store: Store,
    copy: Option<ResultsCopy>,
    max_time: Option<Duration>,
    progress: Progress,
    metrics: Option<Metrics>,
    signals: Signals,
    status: StatusRequests,
}
