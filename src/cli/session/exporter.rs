//! The metrics of a training as Prometheus reads them, over HTTP.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use metrics::{Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusRecorder};

use super::totals::RunTotals;
use crate::cli::console::Console;
use crate::settings::UsageError;
use crate::training::{CallMetrics, Live};

/// A listener that answers with the metrics of the last call, and during a call with the run's live
/// values. It ends with the process.
pub(crate) struct Exporter(Arc<PrometheusRecorder>);

/// Interval between readings of a run.
const LIVE: Duration = Duration::from_secs(1);

impl Exporter {
    /// A listener at the address, if there is one.
    ///
    /// # Errors
    /// [`UsageError`] for a text that is no address, or an address that cannot be listened on.
    pub(crate) fn of(address: Option<&str>, console: &mut Console<'_>) -> Result<Option<Self>> {
        let Some(text) = address else { return Ok(None) };
        let address = parse(text)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .context("cannot start the listener of --metrics")?;
        let inside = runtime.enter();
        let (recorder, listener) =
            PrometheusBuilder::new().with_http_listener(address).build().map_err(|error| {
                UsageError::new(format!("--metrics {text}: cannot listen there: {error}"))
            })?;
        drop(inside);
        let listen = move || {
            if let Err(error) = runtime.block_on(listener) {
                tracing::error!("the listener of --metrics has ended: {error:?}");
            }
        };
        thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(listen)
            .context("cannot start the listener of --metrics")?;
        console.say(&format!("metrics for Prometheus: http://{address}/metrics"));
        Ok(Some(Exporter(Arc::new(recorder))))
    }

    /// Shows the metrics of a call.
    pub(crate) fn call(&self, call: &CallMetrics, totals: &RunTotals) {
        let counters = &totals.counters;
        for (name, value) in [
            ("env_steps", counters.env_steps as f64),
            ("iterations", counters.iterations as f64),
            ("episodes", counters.episodes as f64),
            ("env_steps_per_second", totals.speed_now),
        ] {
            self.gauge(name, value);
        }
        if let Some(mean) = counters.mean_return {
            self.gauge("mean_return", mean);
        }
        for (name, series) in &call.per_iteration {
            if let Some(last) = series.iter().rev().find(|value| value.is_finite()) {
                self.gauge(name, f64::from(*last));
            }
        }
        for (name, value) in &call.per_call {
            self.gauge(name, *value);
        }
        for (name, count) in &call.counts {
            let counter = self.0.register_counter(&key(name, "_total"), &METADATA);
            counter.increment(*count);
        }
    }

    /// Shows a run's live values, now and every second, until the result is dropped.
    ///
    /// # Errors
    /// A thread that cannot be started.
    pub(crate) fn follow(&self, live: Live) -> Result<()> {
        let show = move |recorder: &PrometheusRecorder| {
            live().into_iter().for_each(|(name, value)| gauge(recorder, name, value));
        };
        show(&self.0);
        let recorder = Arc::downgrade(&self.0);
        let follow = move || {
            loop {
                thread::sleep(LIVE);
                let Some(recorder) = recorder.upgrade() else { break };
                show(&recorder);
            }
        };
        let thread = thread::Builder::new().name("live metrics".to_owned());
        thread.spawn(follow).context("cannot follow the run for --metrics")?;
        Ok(())
    }

    fn gauge(&self, name: &str, value: f64) {
        gauge(&self.0, name, value);
    }
}

fn gauge(recorder: &PrometheusRecorder, name: &str, value: f64) {
    recorder.register_gauge(&key(name, ""), &METADATA).set(value);
}

const METADATA: Metadata<'static> = Metadata::new("podracer", Level::INFO, None);

/// A metric's name with the prefix `podracer_`. The part before a `/` is the owner: a thread or an
/// evaluation.
fn key(name: &str, end: &str) -> Key {
    let clean = |text: &str| text.replace(|c: char| !c.is_ascii_alphanumeric(), "_");
    match name.split_once('/') {
        Some((of, name)) => Key::from_parts(
            format!("podracer_{}{end}", clean(name)),
            vec![Label::new("of", of.to_owned())],
        ),
        None => Key::from_name(format!("podracer_{}{end}", clean(name))),
    }
}

fn parse(text: &str) -> Result<SocketAddr> {
    let address = text.to_socket_addrs().ok().and_then(|mut all| all.next());
    Ok(address.ok_or_else(|| {
        UsageError::new(format!("--metrics {text}: expected HOST:PORT such as 127.0.0.1:9100"))
    })?)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::time::Instant;

    use super::*;
    use crate::run_directory::Counters;

    #[test]
    fn metrics_are_read_over_http() {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut console = Console::new(&mut out, &mut err, false);
        let exporter = Exporter::of(Some(&free.to_string()), &mut console).unwrap().unwrap();
        let call = CallMetrics {
            per_iteration: vec![("loss".to_owned(), vec![2.0, 0.5, f32::NAN])],
            per_call: vec![("inference_0/waiting_for_workers".to_owned(), 0.25)],
            counts: vec![("workers_joined".to_owned(), 2)],
            ..CallMetrics::default()
        };
        let counters = Counters { env_steps: 640, ..Counters::default() };
        let totals = RunTotals::new(Instant::now(), counters, Vec::new());
        exporter.call(&call, &totals);
        exporter.follow(Box::new(|| vec![("seconds_without_motion", 12.0)])).unwrap();
        exporter.call(&call, &totals);
        let mut stream = TcpStream::connect(free).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        for line in [
            "podracer_loss 0.5",
            "podracer_env_steps 640",
            "podracer_waiting_for_workers{of=\"inference_0\"} 0.25",
            "podracer_workers_joined_total 4",
            "podracer_seconds_without_motion 12",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        let problem = Exporter::of(Some("nowhere"), &mut console).err().unwrap().to_string();
        assert!(problem.contains("expected HOST:PORT"), "{problem}");
    }
}
