//! TensorBoard's event file. Each record has a length, a protocol buffer and two checksums.
//!
//! The crate `tensorboard-rs` also writes such files, but ends the process if the disk is full.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use prost::Message;

use super::metrics::{cut, synchronised};
use super::thinning::Line;
use crate::files::cannot_write;
use crate::load::MachineLoad;

/// The fields of TensorFlow's `event.proto` that scalars need.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Event {
    #[prost(double, tag = "1")]
    pub(super) wall_time: f64,
    #[prost(int64, tag = "2")]
    pub(super) step: i64,
    #[prost(string, optional, tag = "3")]
    pub(super) file_version: Option<String>,
    #[prost(message, optional, tag = "5")]
    pub(super) summary: Option<Summary>,
}

/// The fields of TensorFlow's `summary.proto` that scalars and images need.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Summary {
    #[prost(message, repeated, tag = "1")]
    pub(super) value: Vec<Value>,
}

/// `Summary.Value` with a simple value or an image.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Value {
    #[prost(string, tag = "1")]
    pub(super) tag: String,
    #[prost(float, optional, tag = "2")]
    pub(super) simple_value: Option<f32>,
    #[prost(message, optional, tag = "4")]
    pub(super) image: Option<Image>,
}

/// `Summary.Image`: the bytes of a file, which may be an animated GIF.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Image {
    #[prost(int32, tag = "1")]
    pub(super) height: i32,
    #[prost(int32, tag = "2")]
    pub(super) width: i32,
    /// 3 for red, green and blue.
    #[prost(int32, tag = "3")]
    pub(super) colorspace: i32,
    #[prost(bytes = "vec", tag = "4")]
    pub(super) encoded_image_string: Vec<u8>,
}

pub(super) struct Events {
    file: BufWriter<File>,
    path: PathBuf,
}

impl Events {
    pub(super) fn create(folder: &Path) -> Result<Self> {
        let wall_time = now();
        // TensorBoard finds event files by this part of the name.
        let name = format!("events.out.tfevents.{:010}.podracer", wall_time as u64);
        let path = folder.join(name);
        let file = File::create(&path).with_context(|| cannot_write(&path))?;
        let mut events = Self { file: BufWriter::new(file), path };
        let event =
            Event { wall_time, file_version: Some("brain.Event:2".to_owned()), ..Event::default() };
        events.append(&[event])?;
        Ok(events)
    }

    /// Opens an existing file and truncates it to `length` bytes; creates another if it is gone.
    pub(super) fn open(folder: &Path, name: &str, bytes: u64) -> Result<Self> {
        let path = folder.join(name);
        if !path.is_file() {
            return Self::create(folder);
        }
        let opened = || {
            let file = File::options().write(true).open(&path)?;
            let mut file = BufWriter::new(file);
            cut(&mut file, bytes)?;
            Ok::<_, io::Error>(file)
        };
        Ok(Self { file: opened().with_context(|| cannot_write(&path))?, path })
    }

    /// The file's name.
    pub(super) fn name(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Synchronises the file to disk, and returns its length.
    pub(super) fn synchronised(&mut self) -> Result<u64> {
        synchronised(&mut self.file).with_context(|| cannot_write(&self.path))
    }

    /// The scalars of lines, over environment steps.
    pub(super) fn write(&mut self, lines: &[Line]) -> Result<()> {
        let wall_time = now();
        let of_line = |line: &Line| {
            let series = line.series.iter();
            let mut value: Vec<Value> =
                series.map(|(tag, series)| Value::scalar(tag, series.mean())).collect();
            if let Some(calls) = &line.calls {
                let speed = calls.env_steps as f64 / calls.seconds.max(f64::MIN_POSITIVE);
                value.push(Value::scalar("env_steps_per_second", speed as f32));
                let values = calls.values.iter();
                value.extend(values.map(|(tag, value)| Value::scalar(tag, *value as f32)));
                let counts = calls.counts.iter();
                value.extend(counts.map(|(tag, count)| Value::scalar(tag, *count as f32)));
                let load = calls.load.iter().flat_map(MachineLoad::metrics);
                value.extend(load.map(|(tag, value)| Value::scalar(tag, value as f32)));
                value.extend(
                    calls.mean_return.map(|mean| Value::scalar("mean_return", mean as f32)),
                );
            }
            event(wall_time, line.env_steps, value)
        };
        self.append(&lines.iter().map(of_line).collect::<Vec<_>>())
    }

    /// Writes the scalars of an evaluation, at these environment steps.
    pub(super) fn evaluation(&mut self, steps: u64, values: &[(&str, f64)]) -> Result<()> {
        let value = values.iter().map(|&(tag, value)| Value::scalar(tag, value as f32)).collect();
        self.append(&[event(now(), steps, value)])
    }

    /// Writes an animation as a GIF, at these environment steps.
    pub(super) fn film(&mut self, steps: u64, tag: &str, gif: &[u8]) -> Result<()> {
        // A GIF stores its width and height at the sixth and the eighth byte.
        let side = |at: usize| {
            gif.get(at..at + 2).map_or(0, |two| i32::from(two[0]) | (i32::from(two[1]) << 8))
        };
        let image = Image {
            height: side(8),
            width: side(6),
            colorspace: 3,
            encoded_image_string: gif.to_vec(),
        };
        let value = Value { tag: tag.to_owned(), simple_value: None, image: Some(image) };
        self.append(&[event(now(), steps, vec![value])])
    }

    fn append(&mut self, events: &[Event]) -> Result<()> {
        let mut append = || -> io::Result<()> {
            for event in events {
                let bytes = event.encode_to_vec();
                let length = (bytes.len() as u64).to_le_bytes();
                self.file.write_all(&length)?;
                self.file.write_all(&checksum(&length))?;
                self.file.write_all(&bytes)?;
                self.file.write_all(&checksum(&bytes))?;
            }
            self.file.flush()
        };
        append().with_context(|| cannot_write(&self.path))
    }
}

impl Value {
    fn scalar(tag: &str, value: f32) -> Self {
        Self { tag: tag.to_owned(), simple_value: Some(value), image: None }
    }
}

/// Values at these environment steps.
fn event(wall_time: f64, steps: u64, value: Vec<Value>) -> Event {
    Event {
        wall_time,
        step: i64::try_from(steps).unwrap_or(i64::MAX),
        summary: Some(Summary { value }),
        ..Event::default()
    }
}

/// TensorFlow's masked CRC-32C: rotated and shifted, so that the checksum of data with checksums
/// inside stays good.
pub(super) fn checksum(bytes: &[u8]) -> [u8; 4] {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0.0, |since| since.as_secs_f64())
}
