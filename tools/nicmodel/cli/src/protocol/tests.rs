// SPDX-License-Identifier: GPL-2.0
use super::*;

fn refusal(line: &str) -> String {
    parse(line.as_bytes()).expect_err(line)
}

#[test]
fn every_example_is_a_request() {
    for entry in REQUESTS.iter() {
        let request = parse(entry.example.as_bytes());
        assert!(request.is_ok(), "{}: {request:?}", entry.cmd);
    }
}

#[test]
fn the_fields_of_help_are_those_of_the_types() {
    for entry in REQUESTS.iter() {
        let whole: Map<String, Value> = serde_json::from_str(&entry.example).expect("an object");
        // A value of no type: a field that exists refuses it, and one that does not says so.
        for field in &entry.fields {
            let mut fields = whole.clone();
            fields.insert(field.name.clone(), json!({"no": ["type"]}));
            let text = refusal(&Value::Object(fields).to_string());
            // The example of wire is a cable, which has no path and no replay.
            let of_pcap = entry.cmd == "wire" && ["path", "replay"].contains(&field.name.as_str());
            assert_eq!(text.contains("unknown field"), of_pcap, "{text}");
        }
        // And there is no other one.
        let mut fields = whole;
        fields.insert("sice".to_owned(), 1.into());
        let text = refusal(&Value::Object(fields).to_string());
        let known = text
            .split("; ")
            .next()
            .map_or(0, |text| text.matches('`').count() / 2 - 1);
        let expected = match entry.cmd.as_str() {
            // serde lists the field of a cable.
            "wire" => 1,
            _ => entry.fields.len(),
        };
        assert_eq!(known, expected, "{text}");
    }
}

#[test]
fn required_fields_are_required() {
    for entry in REQUESTS.iter() {
        let whole: Map<String, Value> = serde_json::from_str(&entry.example).expect("an object");
        for field in &entry.fields {
            let mut fields = whole.clone();
            fields.remove(&field.name);
            let request = parse(Value::Object(fields).to_string().as_bytes());
            if field.default.is_none() {
                let text = request.expect_err(&field.name);
                let missing = format!("{}: missing field `{}`", entry.cmd, field.name);
                assert!(text.starts_with(&missing), "{text}");
            } else if entry.cmd != "wire" {
                assert!(request.is_ok(), "{}: {}", entry.cmd, field.name);
            }
        }
    }
}

#[test]
fn unknown_fields_are_refused_everywhere() {
    for line in [
        r#"{"cmd":"help","x":1}"#,
        r#"{"cmd":"generate","from":0,"to":1,"count":1,"x":1}"#,
        r#"{"cmd":"wire","port":0,"kind":"sink","x":1}"#,
        r#"{"cmd":"wire","port":0,"kind":"cable","peer":1,"x":1}"#,
        r#"{"cmd":"wire","port":0,"kind":"pcap","path":"a","x":1}"#,
        r#"{"cmd":"wire","port":0,"kind":"tap","path":"a","x":1}"#,
        r#"{"cmd":"inject","port":0,"hex":"00","x":1}"#,
        r#"{"cmd":"link","port":0,"up":true,"x":1}"#,
        r#"{"cmd":"module","port":0,"kind":"sr","x":1}"#,
        r#"{"cmd":"stats","port":0,"x":1}"#,
        r#"{"cmd":"fault","port":0,"kind":"clear","x":1}"#,
        r#"{"cmd":"judge","x":1}"#,
        r#"{"cmd":"trace","port":0,"x":1}"#,
        r#"{"cmd":"accesses","port":0,"x":1}"#,
        r#"{"cmd":"wait","port":0,"until":"link","x":1}"#,
    ] {
        let text = refusal(line);
        let cmd: Value = serde_json::from_str(line).expect("an object");
        let cmd = cmd["cmd"].as_str().expect("a name");
        assert!(text.starts_with(&format!("{cmd}: ")), "{text}");
        assert!(text.contains("unknown field `x`"), "{text}");
        assert!(text.contains("for example {"), "{text}");
    }
}

#[test]
fn a_cable_in_the_wrong_words_is_told_how_to_spell_it() {
    let text = refusal(r#"{"cmd":"wire","port":0,"wire":"cable"}"#);
    assert!(text.starts_with("wire: missing field `kind`"), "{text}");
    assert!(
        text.contains(r#"{"cmd":"wire","port":0,"kind":"cable","peer":1}"#),
        "{text}"
    );
}

#[test]
fn a_wrong_value_names_its_field() {
    for (line, start) in [
        (
            r#"{"cmd":"generate","from":0,"to":1,"count":-1}"#,
            "generate: count: invalid value",
        ),
        (
            r#"{"cmd":"generate","from":0,"to":1,"count":1,"src_mac":"x"}"#,
            "generate: src_mac: \"x\" is no MAC address",
        ),
        (
            r#"{"cmd":"inject","port":0,"hex":"abc"}"#,
            "inject: hex: not pairs",
        ),
        (
            r#"{"cmd":"inject","port":0,"hex":"00","asleep":1}"#,
            "inject: asleep: invalid type",
        ),
        (
            r#"{"cmd":"link","port":0,"up":true,"speed":40000}"#,
            "link: speed: 40000 is neither",
        ),
        (
            r#"{"cmd":"module","port":0,"kind":"sr","id":"0"}"#,
            "module: id: not pairs",
        ),
        (
            r#"{"cmd":"fault","port":0,"kind":"gravity"}"#,
            "fault: kind: unknown variant `gravity`",
        ),
        (
            r#"{"cmd":"fault","port":0,"kind":"clear","count":4294967296}"#,
            "fault: count: invalid value",
        ),
        (r#"{"cmd":"dance"}"#, "cmd: \"dance\" is no request"),
        (r#"{"cmd":7}"#, "cmd: 7 is no name"),
        ("{}", "cmd: missing; it is one of help, generate"),
    ] {
        let text = refusal(line);
        assert!(text.starts_with(start), "{text}");
    }
}

#[test]
fn help_explains_one_request_or_all() {
    let all = help(None, true).expect("known");
    assert_eq!(
        all["requests"].as_array().map(Vec::len),
        Some(REQUESTS.len())
    );
    let one = help(Some("wire"), true).expect("known");
    assert_eq!(one["requests"][0]["cmd"], "wire");
    assert!(
        help(Some("dance"), true)
            .expect_err("unknown")
            .contains("dance")
    );
}

#[test]
fn help_leaves_out_what_takes_a_card() {
    let found = help(None, false).expect("all of them");
    let found = found["requests"].as_array().expect("a list");
    let cmds: Vec<_> = found.iter().map(|entry| &entry["cmd"]).collect();
    assert_eq!(cmds, ["help", "generate", "wire", "inject"]);
    assert!(help(Some("fault"), true).is_ok());
    let error = help(Some("fault"), false).expect_err("it takes a card");
    assert!(error.contains("modelled card"));
}
