use psi_user::model::{CgroupPressure, MemstallSource, Pressure, Quality, SCHEMA, Snapshot, SomeFull, Source};

use super::*;

fn snapshot() -> Snapshot {
    let cgroup = |path: &str, id, avg10| CgroupPressure {
        path: path.to_owned(),
        id,
        level: u32::from(path != "/"),
        cpu: SomeFull {
            some: Pressure {
                avg10,
                total_ns: 1_234_567,
                last: 33.333_333,
                ..Pressure::default()
            },
            full: Pressure::default(),
        },
        memory: None,
        io: SomeFull::default(),
        irq: None,
        counts: None,
    };
    Snapshot {
        schema: SCHEMA,
        time_ns: 1_767_323_045_000_000_000,
        interval_ns: 1_000_000_000,
        source: Source {
            memstall: Some(MemstallSource::Fentry),
            irq: vec!["softirq".to_owned(), "irq_handler".to_owned()],
            hierarchy: "v2".to_owned(),
        },
        quality: Quality {
            missed_switches: 3,
            ..Quality::default()
        },
        flush: None,
        cgroups: vec![cgroup("/", 1, 0.5), cgroup("/a, \"b\"\t=", 2, 12.25)],
    }
}

fn fields(names: &str) -> Vec<Field> {
    names
        .split(',')
        .flat_map(|name| Field::select(name).expect("a field"))
        .collect()
}

fn render(format: Format, names: Option<&str>) -> String {
    Form::new(format, names.map(fields)).render(&snapshot())
}

#[test]
fn csv_and_tsv_quote_and_leave_absent_cells_empty() {
    let names = Some("path,cpu.some.avg10,cpu.some.total_us,memory.full.avg10,source.irq");
    assert_eq!(
        render(Format::Csv, names),
        "path,cpu.some.avg10,cpu.some.total_us,memory.full.avg10,source.irq\n\
         /,0.50,1234.567,,softirq irq_handler\n\
         \"/a, \"\"b\"\"\t=\",12.25,1234.567,,softirq irq_handler\n"
    );
    assert_eq!(
        render(Format::Tsv, Some("id,path,irq.full.avg10,level")),
        "id\tpath\tirq.full.avg10\tlevel\n1\t/\t\t0\n2\t\"/a, \"\"b\"\"\t=\"\t\t1\n"
    );
}

#[test]
fn csv_has_one_header() {
    let mut form = Form::new(Format::Csv, Some(fields("time_ns,quality.missed_switches")));
    let snapshot = snapshot();
    assert_eq!(
        form.render(&snapshot),
        "time_ns,quality.missed_switches\n1767323045000000000,3\n"
    );
    assert_eq!(form.render(&snapshot), "1767323045000000000,3\n");
}

#[test]
fn csv_without_a_choice_has_all_that_json_has() {
    let text = render(Format::Csv, None);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let names: Vec<String> = reader.headers().expect("a header").iter().map(str::to_owned).collect();
    assert_eq!(
        names,
        Field::usual()
            .map(|field| field.name().into_owned())
            .collect::<Vec<_>>()
    );
    let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("rows of one length")).collect();
    assert_eq!(rows.len(), 2);
    let json = serde_json::to_value(snapshot()).expect("JSON");
    for (row, cgroup) in rows.iter().zip(json["cgroups"].as_array().expect("cgroups")) {
        for (name, cell) in names.iter().zip(row) {
            let pointer = format!("/{}", name.replace('.', "/"));
            let expected = cgroup.pointer(&pointer).or_else(|| json.pointer(&pointer));
            match expected {
                None => assert_eq!(cell, "", "{name}"),
                Some(value) if value.is_number() => {
                    assert_eq!(cell.parse::<f64>().ok(), value.as_f64(), "{name}");
                }
                Some(value) if value.is_array() => assert_eq!(cell, "softirq irq_handler"),
                Some(value) => assert_eq!(Some(cell), value.as_str(), "{name}"),
            }
        }
    }
}

#[test]
fn pairs_leave_out_what_is_absent() {
    assert_eq!(
        render(Format::Kv, Some("path,id,memory.some.avg10,cpu.some.last")),
        "path=/ id=1 cpu.some.last=33.33\npath=\"/a, \\\"b\\\"\\t=\" id=2 cpu.some.last=33.33\n"
    );
}

#[test]
fn json_with_fields_has_only_those() {
    assert_eq!(
        render(
            Format::Json,
            Some(
                "cpu.some.avg10,path,memory,time_ns,cpu.full.total_us,cpu.some.last,quality.missed_switches,source.irq"
            )
        ),
        "{\"time_ns\":1767323045000000000,\"source\":{\"irq\":[\"softirq\",\"irq_handler\"]},\
         \"quality\":{\"missed_switches\":3},\"cgroups\":[\
         {\"path\":\"/\",\"cpu\":{\"some\":{\"avg10\":0.5,\"last\":33.33},\"full\":{\"total_us\":0.0}}},\
         {\"path\":\"/a, \\\"b\\\"\\t=\",\"cpu\":{\"some\":{\"avg10\":12.25,\"last\":33.33},\"full\":{\"total_us\":0.0}}}]}\n"
    );
    // With all usual fields it is the same as without a choice.
    let all: Vec<Field> = Field::usual().collect();
    assert_eq!(
        Form::new(Format::Json, Some(all)).render(&snapshot()),
        render(Format::Json, None)
    );
}

#[test]
fn tables_are_for_people() {
    let usual = render(Format::Table, None);
    let lines: Vec<&str> = usual.lines().collect();
    assert_eq!(
        lines[0].split_whitespace().collect::<Vec<_>>()[..8],
        ["CPU", "CPUFULL", "MEM", "MEMFULL", "IO", "IOFULL", "IRQ", "CGROUP"]
    );
    assert!(lines[1].ends_with(" -  /"), "{}", lines[1]);
    assert_eq!(
        render(Format::Table, Some("path,cpu.some.avg10,irq.full.avg10")),
        "CGROUP      CPU SOME AVG10 (%)  IRQ FULL AVG10 (%)\n\
         /                         0.50                   -\n\
         /a, \"b\"\\t=               12.25                   -\n\n"
    );
}
