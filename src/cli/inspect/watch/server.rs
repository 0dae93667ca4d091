//! The page's server: a few answers over HTTP.
//!
//! # Invariants
//! - No request can exhaust the process: the bodies of requests are never read, and the heads, the
//!   number of connections and the time of each are bounded.
//! - A client that is slow, silent or gone does not delay other clients.
//! - A request that starts a process is a POST from the page itself. The process ends when the
//!   client leaves.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use clap::ValueEnum;
use hyper::body::Bytes;
use hyper::header::{HOST, HeaderName, HeaderValue, ORIGIN};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio::time::{sleep, timeout};

use super::episode::{Content, Episodes};
use super::store::{Store, Wanted, bands};
use crate::cli::inspect::curves::{Along, Summary};
use crate::run_directory::{FilmName, MEMORY, PROFILE, RunOverview};

/// Interval between checks of `interrupt`.
const LOOK: Duration = Duration::from_millis(100);
/// Time for the head of a request.
const HEAD: Duration = Duration::from_secs(10);
/// Time for a request and its answer, unless the answer is an episode.
const ANSWER: Duration = Duration::from_secs(60);
/// Time for an episode.
const EPISODE: Duration = Duration::from_secs(600);
/// Greatest number of bytes of a request's head.
const HEAD_BYTES: usize = 16 << 10;
/// Greatest number of connections at once, and of connections per address.
const CONNECTIONS: usize = 64;
const OF_ONE_ADDRESS: usize = 16;
/// Greatest number of answers that are computed at once.
const THREADS: usize = 4;
/// Time for the answers under way when the page ends.
const END: Duration = Duration::from_secs(1);

/// Number of messages of a run that are shown.
const MESSAGES_SHOWN: usize = 200;
/// Greatest number of metrics in one answer.
const METRICS: usize = 32;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
/// The files of the page: path, type and content.
const FILES: [(&str, &str, &str); 12] = [
    ("/", HTML, include_str!("page.html")),
    ("/page.css", CSS, include_str!("page.css")),
    ("/base.js", JAVASCRIPT, include_str!("base.js")),
    ("/view.js", JAVASCRIPT, include_str!("view.js")),
    ("/chart.js", JAVASCRIPT, include_str!("chart.js")),
    ("/charts.js", JAVASCRIPT, include_str!("charts.js")),
    ("/legend.js", JAVASCRIPT, include_str!("legend.js")),
    ("/table.js", JAVASCRIPT, include_str!("table.js")),
    ("/run.js", JAVASCRIPT, include_str!("run.js")),
    ("/profile.js", JAVASCRIPT, include_str!("profile.js")),
    ("/film.js", JAVASCRIPT, include_str!("film.js")),
    ("/page.js", JAVASCRIPT, include_str!("page.js")),
];

/// An answer: its code, its type and its bytes.
pub(super) struct Answer {
    code: StatusCode,
    kind: &'static str,
    body: Content,
}

impl Answer {
    fn new(kind: &'static str, bytes: impl Into<Bytes>) -> Self {
        Answer { code: StatusCode::OK, kind, body: Content::whole(bytes.into()) }
    }

    fn refusal(code: StatusCode, problem: String) -> Self {
        Answer { code, ..Answer::new("text/plain; charset=utf-8", problem) }
    }
}

/// The runs of a page, and the rule for access to them.
pub(super) struct Site {
    store: Mutex<Store>,
    /// The token that a request must name; `None` for a page on this machine only.
    token: Option<String>,
    episodes: Episodes,
}

/// Serves the page of some runs until `interrupt` is set.
///
/// # Errors
/// An error if the system provides no listener or threads.
pub(super) fn serve(
    listener: std::net::TcpListener,
    token: Option<String>,
    store: Store,
    interrupt: &AtomicBool,
) -> Result<()> {
    let store = Mutex::new(store);
    let site = Arc::new(Site { store, token, episodes: Episodes::default() });
    let mut builder = runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().max_blocking_threads(THREADS).build()?;
    let served = runtime.block_on(accept(listener, site, interrupt));
    runtime.shutdown_timeout(END);
    served
}

async fn accept(
    listener: std::net::TcpListener,
    site: Arc<Site>,
    interrupt: &AtomicBool,
) -> Result<()> {
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    let guests = Guests::default();
    while !interrupt.load(Ordering::Relaxed) {
        match timeout(LOOK, listener.accept()).await {
            Ok(Ok((stream, from))) => {
                // A connection without a seat is closed.
                let Some(seat) = guests.seat(from.ip()) else { continue };
                let site = Arc::clone(&site);
                tokio::spawn(async move {
                    connection(stream, site).await;
                    drop(seat);
                });
            }
            // An error such as too many open files, which soon passes.
            Ok(Err(_)) => sleep(LOOK).await,
            Err(_) => {}
        }
    }
    Ok(())
}

/// Answers one request.
async fn connection(stream: TcpStream, site: Arc<Site>) {
    let plays = Arc::new(AtomicBool::new(false));
    let over = {
        let plays = Arc::clone(&plays);
        async move {
            sleep(ANSWER).await;
            if plays.load(Ordering::Relaxed) {
                sleep(EPISODE - ANSWER).await;
            }
        }
    };
    let answer = service_fn(move |request| {
        let (site, plays) = (Arc::clone(&site), Arc::clone(&plays));
        async move {
            let answer = site.answer(request, &plays).await;
            Ok::<_, Infallible>(response(answer))
        }
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_BYTES);
    let served = http.keep_alive(false).serve_connection(TokioIo::new(stream), answer);
    tokio::select! {
        // An error means that the client is gone.
        _ = served => {}
        () = over => {}
    }
}

/// The connections of each address.
#[derive(Clone, Default)]
struct Guests(Arc<Mutex<BTreeMap<IpAddr, usize>>>);

/// A connection, which counts until it is dropped.
struct Seat {
    guests: Guests,
    address: IpAddr,
}

impl Guests {
    /// Counts a connection from an address; `None` if there are too many from it, or too many in
    /// total.
    fn seat(&self, address: IpAddr) -> Option<Seat> {
        let mut guests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = guests.values().sum();
        let here = guests.entry(address).or_default();
        if all >= CONNECTIONS || *here >= OF_ONE_ADDRESS {
            return None;
        }
        *here += 1;
        Some(Seat { guests: self.clone(), address })
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut guests = self.guests.0.lock().unwrap_or_else(PoisonError::into_inner);
        let here = guests.entry(self.address).or_default();
        *here -= 1;
        if *here == 0 {
            guests.remove(&self.address);
        }
    }
}

impl Site {
    async fn answer<B>(self: Arc<Self>, request: Request<B>, plays: &AtomicBool) -> Answer {
        let asked = Asked::of(&request);
        if let Err(problem) = self.check(&request, &asked) {
            return Answer::refusal(StatusCode::FORBIDDEN, problem);
        }
        let answer = if asked.plays() {
            plays.store(true, Ordering::Relaxed);
            self.play(asked).await
        } else {
            let answer = move || self.look(&asked);
            tokio::task::spawn_blocking(answer).await.context("the page failed").flatten()
        };
        answer
            .unwrap_or_else(|error| Answer::refusal(StatusCode::BAD_REQUEST, format!("{error:#}")))
    }

    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer to a request that only reads.
    fn look(&self, asked: &Asked) -> Result<Answer> {
        if let Some(&(_, kind, text)) = FILES.iter().find(|(path, ..)| *path == asked.path) {
            return Ok(Answer::new(kind, text));
        }
        let mut store = self.store();
        let json = |text: serde_json::Value| Answer::new("application/json", text.to_string());
        Ok(match asked.path.as_str() {
            "/api/state" => {
                store.refresh();
                json(store.state(by(asked).as_deref()))
            }
            "/api/curves" => json(store.curves(&wanted(asked)?, asked.get("metric"))),
            "/api/charts" => {
                let (open, runs) = (asked.all("open").collect(), asked.all("run").collect());
                json(store.charts(&wanted(asked)?, &open, &runs))
            }
            "/api/bands" => {
                let wanted = wanted(asked)?;
                let named = asked.all("group").filter(|_| wanted.along.has_means());
                let members = store.members(&wanted, &named.collect());
                // The intervals take a while, and other requests are answered meanwhile.
                drop(store);
                json(bands(&members, wanted.summary))
            }
            "/api/run" => {
                let run = run(&store, asked)?;
                json(json!({
                    "config": run.config()?,
                    "result": run.result()?,
                    "profile": run.profile(PROFILE)?,
                    "memory": run.profile(MEMORY)?,
                }))
            }
            "/api/now" => json(now(&store, asked)?),
            "/api/film" => {
                let name = FilmName::of(asked.get("name")).context("there is no such film")?;
                Answer::new("image/gif", run(&store, asked)?.film(&name)?)
            }
            _ => Answer::refusal(StatusCode::NOT_FOUND, "there is no such page".to_owned()),
        })
    }

    /// The pictures of an episode.
    async fn play(self: Arc<Self>, asked: Asked) -> Result<Answer> {
        let seed = asked.get("seed").parse();
        let values = asked.get("values") == "true";
        let site = Arc::clone(&self);
        // Another answer may hold the runs for a while.
        let run = move || Ok(run(&site.store(), &asked)?.run.clone());
        let run = tokio::task::spawn_blocking(run).await.context("the page failed").flatten()?;
        let seed = seed.context("expected a seed")?;
        let body = self.episodes.play(&run, seed, values).await?;
        Ok(Answer { body, ..Answer::new("video/x-yuv4mpeg", Bytes::new()) })
    }

    /// Rejects methods that a path does not have, requests from another site's page, and requests
    /// without the token.
    fn check<B>(&self, request: &Request<B>, asked: &Asked) -> Result<(), String> {
        let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
        let host = header(HOST).unwrap_or_default();
        match &self.token {
            Some(token) if asked.get("token") != token => {
                return Err(
                    "the address of the page ends in its token: `podracer watch` has printed it"
                        .to_owned(),
                );
            }
            Some(_) => {}
            None => {
                let name = host.rsplit_once(':').map_or("", |(name, _)| name);
                if !["127.0.0.1", "localhost", "[::1]"].contains(&name) {
                    return Err("the page is for this machine".to_owned());
                }
            }
        }
        let plays = asked.plays();
        if *request.method() != if plays { Method::POST } else { Method::GET } {
            return Err(match plays {
                true => "an episode is played for a POST".to_owned(),
                false => "the page only reads".to_owned(),
            });
        }
        // Browsers name the site of the page with every POST.
        let site = header(ORIGIN).map(|site| site.split_once("://").map_or(site, |(_, site)| site));
        if plays && site.is_some_and(|site| site != host) {
            return Err("an episode is played for this page alone".to_owned());
        }
        Ok(())
    }
}

/// Path and parameters of a request.
struct Asked {
    path: String,
    parameters: Vec<(String, String)>,
}

impl Asked {
    fn of<B>(request: &Request<B>) -> Self {
        let parameters = form_urlencoded::parse(request.uri().query().unwrap_or("").as_bytes());
        let path = request.uri().path().to_owned();
        Asked { path, parameters: parameters.into_owned().collect() }
    }

    /// True for a request that starts a process.
    fn plays(&self) -> bool {
        self.path == "/api/play"
    }

    /// A parameter, the last of its name; empty if it is missing.
    fn get(&self, name: &str) -> &str {
        self.all(name).last().unwrap_or("")
    }

    /// The values of a parameter that may be repeated.
    fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let named = self.parameters.iter().filter(move |(one, _)| one == name);
        named.map(|(_, value)| value.as_str())
    }
}

fn run<'a>(store: &'a Store, asked: &Asked) -> Result<&'a RunOverview> {
    store.run(Path::new(asked.get("run"))).context("there is no such run")
}

/// The metrics and the axis of a request for curves.
fn wanted(asked: &Asked) -> Result<Wanted> {
    fn choice<T: ValueEnum>(asked: &Asked, name: &str) -> Result<T> {
        T::from_str(asked.get(name), true).map_err(|error| anyhow::anyhow!("{name}: {error}"))
    }
    let (along, summary): (Along, Summary) = (choice(asked, "along")?, choice(asked, "summary")?);
    let end = |name: &str| asked.get(name).parse().ok().filter(|end: &f64| end.is_finite());
    let part = end("from").zip(end("to")).map(|(from, to)| [from, to]);
    let metrics: BTreeSet<&str> = asked.all("metric").take(METRICS).collect();
    let metrics = metrics.into_iter().map(str::to_owned).collect();
    let without = asked.all("without").map(PathBuf::from).collect();
    Ok(Wanted { metrics, along, part, summary, without, by: by(asked) })
}

/// The setting that groups the runs of an answer.
fn by(asked: &Asked) -> Option<String> {
    Some(asked.get("by").to_owned()).filter(|key| !key.is_empty())
}

/// The parts of a run that grow: its last messages, the activities of its threads, and the files of
/// recorded episodes.
fn now(store: &Store, asked: &Asked) -> Result<serde_json::Value> {
    let run = run(store, asked)?;
    let films: Vec<_> = run.films().iter().map(FilmName::file).collect();
    let threads = store.threads(&run.run);
    Ok(json!({ "messages": run.messages(MESSAGES_SHOWN)?, "threads": threads, "films": films }))
}

fn response(Answer { code, kind, body }: Answer) -> Response<Content> {
    let zipped = body.zipped();
    let mut response = Response::new(body);
    *response.status_mut() = code;
    let headers = [
        ("content-type", kind),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        (
            "content-security-policy",
            "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:",
        ),
    ];
    let zipped = zipped.then_some(("content-encoding", "gzip"));
    for (name, value) in headers.into_iter().chain(zipped) {
        let name = HeaderName::from_static(name);
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
