//! Chores of the repository, run as `cargo xtask <chore>`.

use std::{path::Path, process::ExitCode};

use clap::{Parser, Subcommand};

mod bench;
mod generate;
mod image;

#[derive(Parser)]
#[command(bin_name = "cargo xtask", about = "Chores of the repository")]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Write the files that are made from the code, or check that they are as the code would make them.
    Generate {
        /// Change nothing; fail and name the files that differ.
        #[arg(long)]
        check: bool,
    },
    /// Measure what the project promises in numbers (use `make bench`, which builds what is measured).
    Bench(bench::Arguments),
    /// Make the container image and the list of what is in it (use `make image`, which builds the binary first).
    Image(image::Arguments),
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."));
    match &args.chore {
        Chore::Generate { check: true } => generate::check(root, &generate::folders(root)?),
        Chore::Generate { check: false } => generate::write(root, &generate::folders(root)?),
        Chore::Bench(arguments) => bench::run(root, arguments),
        Chore::Image(arguments) => image::run(root, arguments),
    }
}
