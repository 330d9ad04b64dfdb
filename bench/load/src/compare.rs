//! Puts the same load on several subjects in alternation, and compares each with the first.

use anyhow::{Result, bail, ensure};

use crate::load::{self, LoadPlan, LoadSample, Target};

/// A measured program, and the processes that work for it.
#[derive(Debug, Clone)]
pub struct LoadSubject {
    pub name: String,
    pub target: Target,
    pub pid: u32,
    /// Processes that the subject calls, such as the executors.
    pub peers: Vec<u32>,
}

/// The metrics of one pass, or a summary of several, in the order of [`METRICS`].
pub type BenchMetrics = [f64; 5];

pub const METRICS: [&str; 5] =
    ["requests_per_second", "p50_us", "p99_us", "cpu_us_per_request", "peers_cpu_us_per_request"];

#[derive(Debug, Clone)]
pub struct LoadComparison {
    pub plan: LoadPlan,
    pub subjects: Vec<SubjectMetrics>,
}

#[derive(Debug, Clone)]
pub struct SubjectMetrics {
    pub name: String,
    pub turns: Vec<BenchMetrics>,
}

impl LoadComparison {
    /// Fails if the median of the last subject is `most` times that of the first.
    pub fn check_flat(&self, what: &str, most: f64) -> Result<()> {
        let (Some(few), Some(many)) = (self.subjects.first(), self.subjects.last()) else {
            return Ok(());
        };
        let [_, p50, ..] = many.over(few);
        match p50 {
            Some(ratio) if most < ratio.median => {
                let (few, many, ratio) = (&few.name, &many.name, ratio.median);
                bail!("{what} takes {ratio:.2} times as long with {many} as with {few}")
            }
            _ => Ok(()),
        }
    }
}

/// A subject divided by the baseline, pass by pass.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    pub median: f64,
    pub least: f64,
    pub most: f64,
}

/// Measures every subject once in each pass; the first subject is the baseline.
pub async fn compare(
    subjects: &[LoadSubject],
    plan: LoadPlan,
    rounds: usize,
) -> Result<LoadComparison> {
    ensure!(!subjects.is_empty(), "there is nothing to measure");
    ensure!(0 < rounds, "`--rounds` must be at least 1");
    let mut measured: Vec<SubjectMetrics> = subjects
        .iter()
        .map(|subject| SubjectMetrics { name: subject.name.clone(), turns: Vec::new() })
        .collect();
    for _ in 0..rounds {
        for (subject, measured) in subjects.iter().zip(&mut measured) {
            measured.turns.push(measure_pass(subject, &plan).await?);
        }
    }
    Ok(LoadComparison { plan, subjects: measured })
}

async fn measure_pass(subject: &LoadSubject, plan: &LoadPlan) -> Result<BenchMetrics> {
    let mut watched = vec![subject.pid];
    watched.extend(&subject.peers);
    let sample = load::run(&subject.target, plan, &watched).await?;
    Ok(metrics(&sample))
}

fn metrics(sample: &LoadSample) -> BenchMetrics {
    let peers = (1..sample.cpu.len()).map(|place| sample.cpu_us_per_request(place));
    // A sum would start at minus zero, and show it if there are no peers.
    let peers = peers.fold(0.0, |sum, peer| sum + peer);
    [
        sample.per_second(),
        sample.percentile_us(0.50),
        sample.percentile_us(0.99),
        sample.cpu_us_per_request(0),
        peers,
    ]
}

impl SubjectMetrics {
    /// The median of each metric over the passes.
    pub fn medians(&self) -> BenchMetrics {
        std::array::from_fn(|metric| {
            median(self.turns.iter().map(|turn| turn[metric]).collect()).unwrap_or(0.0)
        })
    }

    /// This subject divided by the baseline; `None` if the baseline is zero.
    pub fn over(&self, baseline: &Self) -> [Option<Ratio>; 5] {
        std::array::from_fn(|metric| {
            let pairs = self.turns.iter().zip(&baseline.turns);
            ratio(pairs.map(|(own, base)| (own[metric], base[metric])))
        })
    }
}

fn ratio(pairs: impl Iterator<Item = (f64, f64)>) -> Option<Ratio> {
    let ratios: Vec<f64> =
        pairs.map(|(own, base)| (0.0 < base).then(|| own / base)).collect::<Option<_>>()?;
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let most = ratios.iter().copied().fold(0.0, f64::max);
    Some(Ratio { median: median(ratios)?, least, most })
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len() % 2 == 1 { upper } else { f64::midpoint(values[middle - 1], upper) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(first: &[f64]) -> SubjectMetrics {
        let turns = first.iter().map(|value| [*value, 1.0, 1.0, 1.0, 0.0]).collect();
        SubjectMetrics { name: "x".to_owned(), turns }
    }

    #[test]
    fn passes_are_divided_pair_by_pair() {
        let ratios = measured(&[50.0, 20.0, 90.0]).over(&measured(&[100.0, 10.0, 30.0]));
        assert_eq!(ratios[0], Some(Ratio { median: 2.0, least: 0.5, most: 3.0 }));
        assert_eq!(ratios[4], None, "nothing is divided by zero");
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        assert_eq!(median(vec![4.0, 1.0, 2.0, 10.0]), Some(3.0));
        assert_eq!(median(vec![]), None);
    }
}
