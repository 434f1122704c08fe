// SPDX-License-Identifier: GPL-2.0
//! The program from outside: its sockets, its answers, how it starts and ends.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed unwrap is a failed test

use std::fs::{File, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use nicmodel_device::regs::bits::{Dmatxctl, Register, Txdctl};
use nicmodel_device::regs::offset::{TDBAL, TDT};
use serde_json::Value;
use vfio_user::Client;

const LIMIT: Duration = Duration::from_secs(20);

fn folder(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("nicmodel-cli-{}-{name}", std::process::id()))
}

fn program(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_nicmodel"));
    command
        .arg("serve")
        .arg("--dir")
        .arg(folder)
        .args(arguments);
    command
}

/// A running model in a folder of its own.
struct Model {
    folder: PathBuf,
    child: Child,
}

impl Model {
    fn start(name: &str, arguments: &[&str]) -> Self {
        let folder = folder(name);
        let command = program(&folder, arguments);
        Self::of(folder, command)
    }

    fn of(folder: PathBuf, mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        assert_eq!(line, "ready\n");
        Self { folder, child }
    }

    fn connect(&self) -> BufReader<UnixStream> {
        let stream = UnixStream::connect(self.folder.join("control.sock")).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        BufReader::new(stream)
    }

    fn ask(&self, request: &str) -> Value {
        ask(&mut self.connect(), request)
    }

    fn signal(&self, signal: i32) {
        // SAFETY: sends a signal to a process that this test has started and not yet waited for.
        unsafe { libc::kill(self.child.id() as i32, signal) };
    }

    fn wait(&mut self) -> ExitStatus {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(start.elapsed() < LIMIT, "the model does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn ask(stream: &mut BufReader<UnixStream>, request: &str) -> Value {
    stream
        .get_mut()
        .write_all(format!("{request}\n").as_bytes())
        .unwrap();
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    assert!(line.ends_with('\n'), "{line:?}");
    serde_json::from_str(&line).unwrap()
}

/// The message of a refusal.
fn error(answer: &Value) -> &str {
    assert_eq!(answer["ok"], Value::Bool(false), "{answer}");
    answer["error"].as_str().unwrap()
}

/// The complaint of a model that must not start.
fn fails(folder: &Path, arguments: &[&str]) -> String {
    let mut child = program(folder, arguments)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if start.elapsed() > LIMIT {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let Output { status, stderr, .. } = child.wait_with_output().unwrap();
    assert!(
        status.code().is_some_and(|code| code != 0),
        "{arguments:?}: {status}"
    );
    String::from_utf8(stderr).unwrap()
}

#[test]
fn sockets_are_there_when_ready_and_gone_at_the_end() {
    for transport in ["vfio", "vhost"] {
        let arguments = ["--ports", "3", "--transport", transport];
        let mut model = Model::start(&format!("sockets-{transport}"), &arguments);
        let paths = ["port0.sock", "port1.sock", "port2.sock", "control.sock"];
        for name in paths {
            let metadata = std::fs::symlink_metadata(model.folder.join(name)).unwrap();
            assert!(metadata.file_type().is_socket(), "{transport} {name}");
        }
        model.signal(libc::SIGTERM);
        assert_eq!(model.wait().code(), Some(0));
        for name in paths {
            assert!(!model.folder.join(name).exists(), "{transport} {name}");
        }
    }
}

#[test]
fn sockets_are_private_whatever_the_umask() {
    let folder = folder("umask");
    let mut command = program(&folder, &[]);
    // SAFETY: the call changes a number of the child.
    unsafe {
        command.pre_exec(|| {
            libc::umask(0);
            Ok(())
        });
    }
    let model = Model::of(folder, command);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o77;
    assert_eq!(mode(&model.folder), 0);
    for entry in std::fs::read_dir(&model.folder).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0, "{}", path.display());
    }
}

#[test]
fn a_folder_in_which_others_write_is_refused() {
    let folder = folder("theirs");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, Permissions::from_mode(0o777)).unwrap();
    assert!(fails(&folder, &[]).contains("others"));
    std::fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
    let link = folder.with_extension("link");
    std::os::unix::fs::symlink(&folder, &link).unwrap();
    assert!(fails(&link, &[]).contains("link"));
    std::fs::remove_file(link).unwrap();
    std::fs::remove_dir(folder).unwrap();
}

#[test]
fn guest_memory_that_is_cut_off_is_survived_and_told() {
    const SIZE: u64 = 1 << 20;
    let model = Model::start("cut", &["--trap"]);
    let path = model.folder.join("memory");
    let memory = File::create_new(&path).unwrap();
    memory.set_len(SIZE).unwrap();
    let memory = File::options().read(true).write(true).open(&path).unwrap();
    let mut guest = Client::new(&model.folder.join("port0.sock")).unwrap();
    guest.dma_map(0, 0, SIZE, memory.as_raw_fd()).unwrap();
    let mut set = |register: u32, value: u32| {
        guest
            .region_write(0, register.into(), &value.to_le_bytes())
            .unwrap();
    };
    set(TDBAL + 8, 128 * 16);
    set(Dmatxctl::offset(0), Dmatxctl::ZERO.with_te(true).raw());
    set(Txdctl::offset(0), Txdctl::ZERO.with_enable(true).raw());
    memory.set_len(0).unwrap();
    set(TDT, 8);
    let start = Instant::now();
    while model.ask(r#"{"cmd":"stats","port":0}"#)["dma_errors"] == 0 {
        assert!(start.elapsed() < LIMIT, "nothing is told");
    }
    assert_eq!(model.ask(r#"{"cmd":"stats","port":1}"#)["ok"], true);
}

#[test]
fn several_clients_are_served_at_once() {
    let model = Model::start("clients", &[]);
    let mut slow = model.connect();
    // No guest has the ports up: the run takes its time to drain, and is answered all the same.
    slow.get_mut()
        .write_all(b"{\"cmd\":\"generate\",\"from\":0,\"to\":1,\"count\":64,\"size\":60}\n")
        .unwrap();
    for _ in 0..3 {
        let mut quick = model.connect();
        for port in 0..2 {
            let answer = ask(&mut quick, &format!(r#"{{"cmd":"stats","port":{port}}}"#));
            assert_eq!(answer["ok"], Value::Bool(true));
            assert_eq!(answer["mac"], format!("02:82:59:90:00:0{port}"));
        }
    }
    let mut line = String::new();
    slow.read_line(&mut line).unwrap();
    let report: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(report["sent"], 64);
    assert_eq!(report["lost"]["rx_disabled"], 64, "{report}");
    let stats = model.ask(r#"{"cmd":"stats","port":0}"#);
    assert_eq!(stats["rx_disabled"], 64);
}

#[test]
fn link_wire_fault_and_inject_do_what_they_say() {
    let model = Model::start("commands", &[]);
    assert_eq!(
        model.ask(r#"{"cmd":"link","port":1,"up":false}"#)["ok"],
        true
    );
    assert_eq!(model.ask(r#"{"cmd":"stats","port":1}"#)["link"], false);
    assert_eq!(model.ask(r#"{"cmd":"stats","port":0}"#)["link"], true);
    assert_eq!(
        model.ask(r#"{"cmd":"wire","port":0,"kind":"cable","peer":1}"#)["ok"],
        true
    );
    assert_eq!(model.ask(r#"{"cmd":"stats","port":1}"#)["wire"]["peer"], 0);
    assert_eq!(
        model.ask(r#"{"cmd":"wire","port":1,"kind":"sink"}"#)["ok"],
        true
    );
    assert_eq!(
        model.ask(r#"{"cmd":"stats","port":0}"#)["wire"]["kind"],
        "sink"
    );
    let answer = model.ask(r#"{"cmd":"inject","port":1,"hex":"ffffffffffff 020000000001 0800"}"#);
    assert_eq!(
        (&answer["ok"], &answer["taken"]),
        (&true.into(), &false.into())
    );
    for fault in [
        r#""kind":"rx_length","count":50,"value":65535"#,
        r#""kind":"interrupt","count":1,"value":0"#,
        r#""kind":"ones","count":1,"value":8"#,
        r#""kind":"unmapped""#,
        r#""kind":"remove""#,
        r#""kind":"stuck""#,
        r#""kind":"none""#,
        r#""kind":"clear""#,
    ] {
        let answer = model.ask(&format!(r#"{{"cmd":"fault","port":0,{fault}}}"#));
        assert_eq!(answer["ok"], true, "{fault}");
    }
}

#[test]
fn a_bad_request_names_what_is_wrong() {
    let model = Model::start("bad", &[]);
    let mut client = model.connect();
    for (request, word) in [
        ("nonsense", "JSON"),
        ("[1,2]", "JSON"),
        ("{}", "cmd"),
        (r#"{"cmd":"dance"}"#, "dance"),
        (r#"{"cmd":"stats"}"#, "port"),
        (r#"{"cmd":"stats","port":2}"#, "port"),
        (r#"{"cmd":"stats","port":-1}"#, "port"),
        (r#"{"cmd":"link","port":0}"#, "up"),
        (r#"{"cmd":"wire","port":0,"kind":"rope"}"#, "rope"),
        (r#"{"cmd":"wire","port":0,"kind":"cable"}"#, "peer"),
        (r#"{"cmd":"inject","port":0,"hex":"abc"}"#, "hex"),
        (r#"{"cmd":"generate","from":0,"to":1}"#, "count"),
        (
            r#"{"cmd":"generate","from":0,"to":1,"count":1,"sice":60}"#,
            "sice",
        ),
        (
            r#"{"cmd":"generate","from":0,"to":1,"count":1,"src_mac":"x"}"#,
            "\"x\"",
        ),
        (r#"{"cmd":"fault","port":0,"kind":"gravity"}"#, "gravity"),
        (
            r#"{"cmd":"fault","port":0,"kind":"rx_length","count":-1}"#,
            "count",
        ),
        (r#"{"cmd":"wait","port":0,"until":"rain"}"#, "rain"),
        (r#"{"cmd":"wait","port":0,"until":"reads"}"#, "register"),
        (
            r#"{"cmd":"wait","port":0,"until":"writes","register":"LINK"}"#,
            "\"LINK\"",
        ),
    ] {
        let answer = ask(&mut client, request);
        assert!(error(&answer).contains(word), "{request}: {answer}");
    }
    // The same connection is still good.
    assert_eq!(ask(&mut client, r#"{"cmd":"stats","port":0}"#)["ok"], true);
}

#[test]
fn a_line_without_end_ends_the_connection_only() {
    let model = Model::start("endless", &[]);
    let mut client = model.connect();
    let _ = client.get_mut().write_all(&vec![b'x'; 3 << 20]);
    let mut rest = Vec::new();
    let start = Instant::now();
    let _ = client.read_to_end(&mut rest);
    assert!(start.elapsed() < LIMIT, "the model waits for more");
    assert_eq!(model.ask(r#"{"cmd":"stats","port":0}"#)["ok"], true);
}

#[test]
fn what_was_left_behind_is_replaced() {
    for transport in ["vfio", "vhost", "stream"] {
        let (name, arguments) = (format!("stale-{transport}"), ["--transport", transport]);
        let mut model = Model::start(&name, &arguments);
        model.child.kill().unwrap();
        model.wait();
        assert!(
            model.folder.join("port0.sock").exists(),
            "it had no chance to clean up"
        );
        let again = Model::start(&name, &arguments);
        assert_eq!(again.ask(r#"{"cmd":"help"}"#)["ok"], true);
    }
}

#[test]
fn arguments_are_checked() {
    let folder = folder("arguments");
    assert!(fails(&folder, &["--ports", "0"]).contains("ports"));
    assert!(fails(&folder, &["--device-id", "1572"]).contains("10fb"));
    assert!(fails(&folder, &["--transport", "pci"]).contains("vhost"));
    let nine = ["--transport", "vhost", "--ports", "9"];
    assert!(fails(&folder, &nine).contains("room for 8"));
    assert!(fails(Path::new("/proc/nowhere"), &[]).contains("/proc/nowhere"));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("port0.sock"), "precious").unwrap();
    assert!(fails(&folder, &[]).contains("not a socket"));
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn two_models_do_not_share_a_folder() {
    let model = Model::start("shared", &[]);
    assert!(fails(&model.folder, &[]).contains("in use"));
    assert_eq!(model.ask(r#"{"cmd":"stats","port":0}"#)["ok"], true);
}

#[test]
fn help_lists_the_requests() {
    let model = Model::start("help", &[]);
    let answer = model.ask(r#"{"cmd":"help"}"#);
    assert_eq!(answer["ok"], true);
    let requests = answer["requests"].as_array().unwrap();
    assert_eq!(requests.len(), 12, "{answer}");
    for request in requests {
        assert!(request["about"].is_string() && request["fields"].is_array());
        // The examples are fit for the model that prints them.
        let example: Value = serde_json::from_str(request["example"].as_str().unwrap()).unwrap();
        assert_eq!(example["cmd"], request["cmd"]);
    }
    let answer = model.ask(r#"{"cmd":"help","request":"wire"}"#);
    assert_eq!(answer["requests"][0]["fields"][1]["name"], "kind");
}

#[test]
fn the_far_side_of_another_card_says_what_it_lacks() {
    let model = Model::start("stream", &["--transport", "stream"]);
    let answer = model.ask(r#"{"cmd":"help"}"#);
    let requests: Vec<_> = answer["requests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["cmd"].as_str().unwrap())
        .collect();
    assert_eq!(requests, ["help", "generate", "wire", "inject"]);

    let answer = model.ask(r#"{"cmd":"link","port":1,"up":false}"#);
    assert_eq!(
        error(&answer),
        "link: the card of port 1 is not this model's"
    );
    let answer = model.ask(r#"{"cmd":"link","port":2,"up":false}"#);
    assert!(error(&answer).starts_with("link: port: there is no port 2"));
}

#[test]
fn a_trace_has_phases_and_says_whether_it_is_complete() {
    let model = Model::start("trace", &["--trap"]);
    let begin =
        |phase: &str| model.ask(&format!(r#"{{"cmd":"trace","port":1,"phase":"{phase}"}}"#));
    assert_eq!(begin("probe")["ok"], true);
    assert_eq!(begin("first packet")["ok"], true);
    assert_eq!(model.ask(r#"{"cmd":"trace","port":1}"#)["ok"], true);
    let answer = model.ask(r#"{"cmd":"accesses","port":1}"#);
    assert_eq!(answer["complete"], true, "{answer}");
    let names: Vec<_> = answer["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|phase| phase["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["probe", "first packet"]);
    let answer = model.ask(r#"{"cmd":"accesses","port":0}"#);
    assert_eq!(answer["phases"].as_array().unwrap().len(), 0, "{answer}");

    for name in [String::new(), "x".repeat(65)] {
        assert!(error(&begin(&name)).starts_with("trace: phase: a name has"));
    }
    for number in 0..30 {
        assert_eq!(begin(&number.to_string())["ok"], true);
    }
    assert!(error(&begin("one more")).contains("32 phases at most"));

    let model = Model::start("trace-mapped", &[]);
    let answer = model.ask(r#"{"cmd":"accesses","port":0}"#);
    assert_eq!(answer["complete"], false, "{answer}");
}

#[test]
fn files_lie_in_their_folder_or_are_refused() {
    let files = folder("files-of-requests");
    std::fs::create_dir_all(&files).unwrap();
    let model = Model::start("files", &["--files", files.to_str().unwrap()]);
    let wire = |path: &str| {
        model.ask(&format!(
            r#"{{"cmd":"wire","port":0,"kind":"pcap","path":"{path}"}}"#
        ))
    };
    assert_eq!(wire("a.pcap")["ok"], true);
    assert!(files.join("a.pcap").exists());
    // Neither another file nor what a link leads to is lost.
    std::fs::write(files.join("notes"), "precious").unwrap();
    std::os::unix::fs::symlink("notes", files.join("link")).unwrap();
    for path in ["notes", "link"] {
        assert_eq!(wire(path)["ok"], false, "{path}");
        let kept = std::fs::read_to_string(files.join("notes")).unwrap();
        assert_eq!(kept, "precious", "{path}");
    }
    let made = Command::new("mkfifo").arg(files.join("pipe")).status();
    assert!(made.unwrap().success());
    let answer = model.ask(r#"{"cmd":"wire","port":0,"kind":"pcap","replay":"pipe"}"#);
    assert!(error(&answer).contains("no regular file"), "{answer}");
    let answer = model.ask(r#"{"cmd":"wire","port":0,"kind":"tap","path":"nic0"}"#);
    assert!(error(&answer).contains("--tap"), "{answer}");
    for path in ["/tmp/a.pcap", "../a.pcap"] {
        let answer = wire(path);
        let text = error(&answer);
        assert!(
            text.starts_with("wire: path: ") && text.contains("host"),
            "{text}"
        );
        assert!(text.contains(files.to_str().unwrap()), "{text}");
    }
    let answer = model.ask(r#"{"cmd":"wire","port":0,"kind":"pcap","replay":"none.pcap"}"#);
    assert!(
        error(&answer).starts_with("wire: replay: cannot read"),
        "{answer}"
    );
    std::fs::remove_dir_all(&files).unwrap();
    let missing = folder("missing");
    let text = fails(&missing, &["--files", "/proc/nowhere"]);
    assert!(text.contains("--files /proc/nowhere"), "{text}");
    let _ = std::fs::remove_dir_all(missing);
}
