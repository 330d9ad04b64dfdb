//! Converts OpenMetrics text to the older text format of Prometheus.

use std::fmt::Write as _;

/// The same samples, described for readers of the older format: a counter by the name of its
/// samples, an info metric as a gauge, and neither units nor an end mark.
pub(super) fn prometheus_text(open: &str) -> String {
    let mut text = String::with_capacity(open.len());
    // A description comes before the type that determines its name, so it waits for the type.
    let mut help = None;
    for line in open.lines() {
        let Some(comment) = line.strip_prefix("# ") else {
            text.push_str(line);
            text.push('\n');
            continue;
        };
        let mut words = comment.splitn(3, ' ');
        match (words.next(), words.next(), words.next()) {
            (Some("HELP"), Some(name), Some(words)) => help = Some((name, words)),
            (Some("TYPE"), Some(name), Some(kind)) => {
                let (ending, kind) = match kind {
                    "counter" => ("_total", "counter"),
                    "info" => ("_info", "gauge"),
                    "unknown" => ("", "untyped"),
                    kind => ("", kind),
                };
                if let Some((_, words)) = help.take().filter(|(described, _)| *described == name) {
                    let _ = writeln!(text, "# HELP {name}{ending} {words}");
                }
                let _ = writeln!(text, "# TYPE {name}{ending} {kind}");
            }
            _ => {}
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_has_the_name_of_its_samples() {
        let open = "# HELP a_b Some.\n# TYPE a_b counter\n# UNIT a_b b\na_b_total{x=\"# y\"} 1\n\
                    # HELP build The build.\n# TYPE build info\nbuild_info{version=\"1\"} 1\n\
                    # HELP t Time.\n# TYPE t histogram\nt_sum 0.5\nt_count 1\nt_bucket{le=\"+Inf\"} 1\n\
                    # EOF\n";
        let expected = "# HELP a_b_total Some.\n# TYPE a_b_total counter\na_b_total{x=\"# y\"} 1\n\
                        # HELP build_info The build.\n# TYPE build_info gauge\nbuild_info{version=\"1\"} 1\n\
                        # HELP t Time.\n# TYPE t histogram\nt_sum 0.5\nt_count 1\nt_bucket{le=\"+Inf\"} 1\n";
        assert_eq!(prometheus_text(open), expected);
    }
}
