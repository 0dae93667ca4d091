//! The page's server: a few answers over HTTP.

use std::collections::BTreeMap;
use std::fs;
use std::io::Cursor;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use serde_json::json;
use tiny_http::{Header, Method, Request, Response, StatusCode};

use super::store::Store;
use crate::cli::curves::{Along, Summary};
use crate::run_directory::{FilmName, RunOverview};
use crate::settings::UsageError;

/// Time between two looks at whether the user wants to stop.
const LOOK: Duration = Duration::from_millis(100);
/// Most bytes of the pictures of an episode.
const LARGEST: u64 = 512 << 20;

/// Number of messages of a run that are shown.
const MESSAGES_SHOWN: usize = 200;
const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// An answer: its type and its bytes.
type Answer = (&'static str, Vec<u8>);

/// Listener of a page.
pub(super) struct Server {
    http: tiny_http::Server,
    address: SocketAddr,
    /// The token that a request has to name; `None` on this machine alone.
    token: Option<String>,
}

impl Server {
    /// A listener at an address.
    ///
    /// # Errors
    /// [`UsageError`] where it cannot be listened at.
    pub(super) fn at(address: SocketAddr, token: Option<String>) -> Result<Self, UsageError> {
        let http = tiny_http::Server::http(address).map_err(|error| {
            UsageError::new(format!(
                "cannot listen at {address}: {error}; name another port, or 0 for one that is free"
            ))
        })?;
        let address = http.server_addr().to_ip().unwrap_or(address);
        Ok(Server { http, address, token })
    }

    /// The address that it listens at.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `interrupt` is set.
    ///
    /// # Errors
    /// Where the listener fails.
    pub(super) fn serve(&self, mut store: Store, interrupt: &AtomicBool) -> Result<()> {
        while !interrupt.load(Ordering::Relaxed) {
            if let Some(request) = self.http.recv_timeout(LOOK).context("the listener failed")? {
                self.answer(request, &mut store);
            }
        }
        Ok(())
    }

    fn answer(&self, request: Request, store: &mut Store) {
        let asked = Asked::of(request.url());
        if let Err(refusal) = self.check(&request, &asked) {
            return respond(request, 403, ("text/plain; charset=utf-8", refusal.into_bytes()));
        }
        if asked.path == "/api/play" {
            // It takes its time, and others need not wait for it.
            let run = store.run(Path::new(asked.get("run"))).cloned();
            thread::spawn(move || {
                let answer = run.context("there is no such run").and_then(|run| {
                    let seed = asked.get("seed").parse().context("expected a seed")?;
                    episode(&run, seed, asked.get("values") == "true")
                });
                give(request, answer);
            });
            return;
        }
        let answer = match asked.path.as_str() {
            "/" => Ok(("text/html; charset=utf-8", PAGE.as_bytes().to_vec())),
            "/page.css" => Ok(("text/css; charset=utf-8", STYLE.as_bytes().to_vec())),
            "/page.js" => Ok(("text/javascript; charset=utf-8", SCRIPT.as_bytes().to_vec())),
            "/api/state" => {
                store.refresh();
                Ok(("application/json", store.state().to_string().into_bytes()))
            }
            "/api/curves" => curves(store, &asked),
            "/api/run" => store
                .run(Path::new(asked.get("run")))
                .context("there is no such run")
                .and_then(|run| details(run)),
            "/api/now" => now(store, Path::new(asked.get("run"))),
            "/api/film" => film(store, &asked),
            _ => {
                let text = "there is no such page".to_owned();
                return respond(request, 404, ("text/plain; charset=utf-8", text.into_bytes()));
            }
        };
        give(request, answer);
    }

    /// Refuses what is no reading, what another site's page asks, and what does not name the token.
    fn check(&self, request: &Request, asked: &Asked) -> Result<(), String> {
        if *request.method() != Method::Get {
            return Err("the page only reads".to_owned());
        }
        match &self.token {
            Some(token) if asked.get("token") != token => {
                Err("the address of the page ends in its token: `podracer watch` has printed it"
                    .to_owned())
            }
            Some(_) => Ok(()),
            None => {
                let host = |header: &&Header| header.field.equiv("Host");
                let host = request.headers().iter().find(host).map(|header| header.value.as_str());
                let name = host.unwrap_or_default().rsplit_once(':').map_or("", |(name, _)| name);
                let local = ["127.0.0.1", "localhost", "[::1]"].contains(&name);
                if local { Ok(()) } else { Err("the page is for this machine".to_owned()) }
            }
        }
    }
}

/// Path and parameters of a request.
struct Asked {
    path: String,
    parameters: BTreeMap<String, String>,
}

impl Asked {
    fn of(url: &str) -> Self {
        let (path, query) = url.split_once('?').unwrap_or((url, ""));
        let parameters = form_urlencoded::parse(query.as_bytes());
        Asked { path: path.to_owned(), parameters: parameters.into_owned().collect() }
    }

    /// A parameter; empty for one that is not there.
    fn get(&self, name: &str) -> &str {
        self.parameters.get(name).map_or("", String::as_str)
    }
}

fn curves(store: &Store, asked: &Asked) -> Result<Answer> {
    fn choice<T: ValueEnum>(asked: &Asked, name: &str) -> Result<T> {
        T::from_str(asked.get(name), true).map_err(|error| anyhow::anyhow!("{name}: {error}"))
    }
    let (along, summary): (Along, Summary) = (choice(asked, "along")?, choice(asked, "summary")?);
    let end = |name: &str| asked.get(name).parse().ok().filter(|end: &f64| end.is_finite());
    let part = end("from").zip(end("to")).map(|(from, to)| [from, to]);
    let curves = store.curves(asked.get("metric"), (along, part), summary);
    Ok(("application/json", curves.to_string().into_bytes()))
}

/// A run's configuration and result.
fn details(run: &RunOverview) -> Result<Answer> {
    let text = json!({ "config": run.config()?, "result": run.result()? });
    Ok(("application/json", text.to_string().into_bytes()))
}

/// The parts of a run that grow: its last messages, the activities of its threads, and the files of recorded episodes.
fn now(store: &Store, run: &Path) -> Result<Answer> {
    let threads = store.threads(run);
    let run = store.run(run).context("there is no such run")?;
    let films: Vec<_> = run.films().iter().map(FilmName::file).collect();
    let text =
        json!({ "messages": run.messages(MESSAGES_SHOWN)?, "threads": threads, "films": films });
    Ok(("application/json", text.to_string().into_bytes()))
}

/// The film of a recorded episode.
fn film(store: &Store, asked: &Asked) -> Result<Answer> {
    let run = store.run(Path::new(asked.get("run"))).context("there is no such run")?;
    let name = FilmName::of(asked.get("name")).context("there is no such film")?;
    Ok(("image/gif", run.film(&name)?))
}

/// The pictures of an episode of a run's last checkpoint, played by a process of its own: YUV4MPEG2, of the environment's own size, or
/// larger with the agent's values beside them.
fn episode(run: &RunOverview, seed: u64, values: bool) -> Result<Answer> {
    let folder = tempfile::tempdir()?;
    let film = folder.path().join("episode.y4m");
    let mut play = Command::new(std::env::current_exe()?);
    play.arg("play").arg(&run.run);
    play.args(if values { &["--values", "--size", "320"][..] } else { &["--size", "1"] });
    let played = play.arg(format!("--seed={seed}")).arg("--output").arg(&film).output()?;
    if !played.status.success() {
        let said = String::from_utf8_lossy(&played.stderr);
        bail!("{}", said.lines().last().unwrap_or("the episode cannot be played"));
    }
    let bytes = fs::metadata(&film)?.len();
    ensure!(bytes <= LARGEST, "the episode's pictures take {bytes} bytes, too many for a page");
    Ok(("video/x-yuv4mpeg", fs::read(&film)?))
}

fn give(request: Request, answer: Result<Answer>) {
    match answer {
        Ok(answer) => respond(request, 200, answer),
        Err(error) => {
            let text = format!("{error:#}").into_bytes();
            respond(request, 400, ("text/plain; charset=utf-8", text));
        }
    }
}

fn respond(request: Request, code: u16, (kind, bytes): Answer) {
    let header =
        |name: &str, value: &str| Header::from_bytes(name.as_bytes(), value.as_bytes()).into_iter();
    let headers = [
        ("Content-Type", kind),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        (
            "Content-Security-Policy",
            "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:",
        ),
    ];
    let headers = headers.into_iter().flat_map(|(name, value)| header(name, value)).collect();
    let length = bytes.len();
    let response = Response::new(StatusCode(code), headers, Cursor::new(bytes), Some(length), None);
    // Who has asked may be gone.
    let _ = request.respond(response);
}
