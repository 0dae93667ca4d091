//! The system's information about a process: its memory, threads and times.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::time::Duration;

/// The memory of a process.
#[derive(Debug)]
pub struct Memory {
    process: u32,
    file: File,
}

/// A range of addresses that was mapped as one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The addresses.
    pub addresses: Range<u64>,
    /// True if the memory is executable.
    pub executable: bool,
    /// The file's path; empty for memory without one.
    pub path: String,
}

impl Memory {
    /// The memory of this process, or of one that it may look at.
    ///
    /// # Errors
    /// If the process does not exist, or belongs to another user.
    pub fn of(process: u32) -> io::Result<Self> {
        Ok(Memory { process, file: File::open(format!("/proc/{process}/mem"))? })
    }

    /// Fills `bytes` from an address on, and returns how many there were.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> usize {
        self.file.read_at(bytes, address).unwrap_or(0)
    }

    /// Adds the words from an address on, `most` of them or as many as there are.
    pub fn words(&self, address: u64, most: usize, words: &mut Vec<u64>) {
        let mut bytes = vec![0; most * size_of::<u64>()];
        let read = self.read(address, &mut bytes);
        let (whole, _) = bytes[..read].as_chunks();
        words.extend(whole.iter().map(|word| u64::from_le_bytes(*word)));
    }

    /// The mapped regions, in the order of their addresses.
    ///
    /// # Errors
    /// If the system does not list them.
    pub fn regions(&self) -> io::Result<Vec<Region>> {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.process))?;
        Ok(maps.lines().filter_map(region).collect())
    }
}

/// A line such as `7f00-7f80 r-xp 00001000 fe:01 123   /usr/lib/libc.so.6`.
fn region(line: &str) -> Option<Region> {
    let (addresses, rest) = line.split_once(' ')?;
    let (start, end) = addresses.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    let mut fields = rest.splitn(5, ' ');
    Some(Region {
        addresses: number(start)?..number(end)?,
        executable: fields.next()?.contains('x'),
        path: fields.nth(3).unwrap_or_default().trim_start().to_owned(),
    })
}

/// Numbers of a process's threads.
pub(crate) fn threads(process: u32) -> io::Result<Vec<u32>> {
    let entries = fs::read_dir(format!("/proc/{process}/task"))?;
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    Ok(entries.flatten().filter_map(number).collect())
}

/// True for a thread that runs or is about to.
pub(crate) fn is_running(process: u32, thread: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/task/{thread}/stat"));
    stat.is_ok_and(|stat| fields(&stat).next() == Some("R"))
}

/// A thread's name.
pub(crate) fn name(process: u32, thread: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{process}/task/{thread}/comm"));
    name.unwrap_or_default().trim().to_owned()
}

/// The time that a process's threads have computed.
pub(crate) fn cpu_time(process: u32) -> io::Result<Duration> {
    /// Units in a second, on every Linux.
    const TICKS: f64 = 100.0;
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let spent = fields(&stat).skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok());
    Ok(Duration::from_secs_f64(spent.sum::<f64>() / TICKS))
}

/// The fields of a `stat` file after the name, which may have any characters.
fn fields(stat: &str) -> impl Iterator<Item = &str> {
    stat.rsplit_once(") ").map_or("", |(_, fields)| fields).split(' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_and_its_end_is_no_fault() {
        let memory = Memory::of(std::process::id()).unwrap();
        let words = [7u64, 9];
        let mut read = vec![1];
        memory.words(words.as_ptr() as u64, 2, &mut read);
        assert_eq!(read, [1, 7, 9]);
        memory.words(16, 2, &mut read);
        assert_eq!((read.len(), memory.read(16, &mut [0; 8])), (3, 0));
    }

    #[test]
    fn regions_have_their_files() {
        let here = regions_have_their_files as fn() as usize as u64;
        let regions = Memory::of(std::process::id()).unwrap().regions().unwrap();
        let own = regions.iter().find(|region| region.addresses.contains(&here)).unwrap();
        assert!(own.executable && own.path.starts_with('/'), "{own:?}");
        let line = "7f00-7f80 rw-p 00001000 fe:01 123                        /a b/c.so";
        let read = region(line).unwrap();
        assert_eq!((read.executable, read.path.as_str()), (false, "/a b/c.so"));
        assert_eq!(region("7f00-7f80 rw-p 00000000 00:00 0 ").unwrap().path, "");
    }
}
