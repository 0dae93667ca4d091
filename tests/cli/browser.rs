//! Chromium without a screen, driven by its DevTools protocol.

use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket, connect};

use super::signals::wait_for;

pub(crate) struct Browser {
    process: Child,
    socket: WebSocket<MaybeTlsStream<TcpStream>>,
    /// The session of the page, once there is one.
    page: Option<String>,
    calls: u64,
}

impl Browser {
    /// Opens a page. `None` if there is no browser.
    pub(crate) fn open(url: &str, profile: &Path) -> Option<Browser> {
        let found = Command::new("chromium").arg("--version").stdout(Stdio::null()).status();
        found.ok().filter(|status| status.success())?;
        let mut process = Command::new("chromium");
        process.args(["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0"]);
        process.arg(format!("--user-data-dir={}", profile.display()));
        process.args(["--window-size=1280,1600", "about:blank"]);
        let mut process = process.stderr(Stdio::piped()).spawn().expect("it starts");
        let mut said = BufReader::new(process.stderr.take().expect("it is piped")).lines();
        let address = said.find_map(|line| Some(line.ok()?.split_once("ws://")?.1.to_owned()));
        let address = format!("ws://{}", address.expect("it says where it listens"));
        std::thread::spawn(move || said.for_each(drop));
        let (socket, _) = connect(address).expect("the browser answers");
        let mut browser = Browser { process, socket, page: None, calls: 0 };
        let target = browser.call("Target.createTarget", json!({ "url": url }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach);
        browser.page = session["sessionId"].as_str().map(str::to_owned);
        Some(browser)
    }

    /// The result of a method of the protocol.
    pub(crate) fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let mut call = json!({ "id": self.calls, "method": method, "params": parameters });
        if let Some(page) = &self.page {
            call["sessionId"] = page.as_str().into();
        }
        self.socket.send(Message::text(call.to_string())).expect("the browser listens");
        loop {
            let Message::Text(said) = self.socket.read().expect("the browser answers") else {
                continue;
            };
            let answer: Value = serde_json::from_str(&said).expect("JSON");
            // Events have no number.
            if answer["id"] == self.calls {
                assert!(answer["error"].is_null(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    /// The value of an expression in the page.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let parameters =
            json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let result = self.call("Runtime.evaluate", parameters);
        assert!(result["exceptionDetails"].is_null(), "{expression}: {result}");
        result["result"]["value"].clone()
    }

    /// The text of an element.
    pub(crate) fn text(&mut self, selector: &str) -> String {
        let value = self.value(&format!("document.querySelector({selector:?})?.textContent ?? ''"));
        value.as_str().unwrap_or_default().to_owned()
    }

    /// Clicks an element.
    pub(crate) fn click(&mut self, selector: &str) {
        self.value(&format!("document.querySelector({selector:?}).click()"));
    }

    /// Waits until an element has a text with this part.
    pub(crate) fn wait(&mut self, selector: &str, part: &str) {
        wait_for(&format!("`{part}` in {selector}"), || self.text(selector).contains(part));
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
