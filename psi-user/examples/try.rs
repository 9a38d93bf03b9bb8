use psi_user::tracer::*;
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut t = Tracer::attach(&Options {
        object: std::env::var_os("OBJ").map(Into::into),
        ..Default::default()
    })
    .map_err(|e| {
        eprintln!("{e}");
        e
    })?;
    for r in t.program_reports() {
        println!("{} {:?}", r.spec.name, r.outcome);
    }
    for _ in 0..5 {
        std::thread::sleep(std::time::Duration::from_secs(1));
        let s = t.snapshot()?;
        println!("{}", serde_json::to_string(&s)?);
    }
    println!("{:?}", t.hold_times());
    Ok(())
}
