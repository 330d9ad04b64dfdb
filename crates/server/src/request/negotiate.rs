//! Chooses the content type of a reply by what the client accepts.

use axum::http::{HeaderMap, header};

/// The index of the offer that the client likes best. A tie goes to the first, which is also the
/// reply to a client that accepts none of them: a reply helps more than none.
pub(crate) fn preferred(headers: &HeaderMap, offers: &[&str]) -> usize {
    let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let ranges: Vec<AcceptRange<'_>> =
        values.flat_map(|it| it.split(',')).filter_map(range).collect();
    let mut best = (0, 0);
    for (index, offer) in offers.iter().enumerate() {
        let weight = weight(&ranges, offer);
        if best.1 < weight {
            best = (index, weight);
        }
    }
    best.0
}

/// One entry of `Accept`: a type such as `text/*`, and its weight in thousandths.
struct AcceptRange<'a> {
    kind: &'a str,
    subkind: &'a str,
    weight: u32,
}

fn range(text: &str) -> Option<AcceptRange<'_>> {
    let mut parts = text.split(';').map(str::trim);
    let (kind, subkind) = parts.next()?.split_once('/')?;
    let quality = parts.find_map(|it| it.strip_prefix("q=").or_else(|| it.strip_prefix("Q=")));
    let quality = quality.map_or(Some(1.0), |text| text.parse::<f32>().ok())?.clamp(0.0, 1.0);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 1000")]
    let weight = (quality * 1_000.0).round() as u32;
    Some(AcceptRange { kind, subkind, weight })
}

/// The weight of an offer: that of the most specific matching range.
fn weight(ranges: &[AcceptRange<'_>], offer: &str) -> u32 {
    let Some((kind, subkind)) = offer.split_once('/') else { return 0 };
    let exactness = |range: &AcceptRange<'_>| {
        let is = |wanted: &str, offered: &str| wanted.eq_ignore_ascii_case(offered);
        match (range.kind, range.subkind) {
            ("*", "*") => Some(0),
            (wanted, "*") if is(wanted, kind) => Some(1),
            (wanted, exactly) if is(wanted, kind) && is(exactly, subkind) => Some(2),
            _ => None,
        }
    };
    let fitting = ranges.iter().filter_map(|range| Some((exactness(range)?, range.weight)));
    fitting.max().map_or(0, |(_, weight)| weight)
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    const OFFERS: [&str; 2] = ["text/plain", "application/openmetrics-text"];

    #[test]
    fn the_client_chooses_and_the_first_offer_is_the_default() {
        for (accept, expected) in [
            ("", 0),
            ("*/*", 0),
            ("application/json", 0),
            ("application/openmetrics-text", 1),
            ("Application/OpenMetrics-Text; version=1.0.0", 1),
            ("application/*", 1),
            ("text/*, application/openmetrics-text;q=0.5", 0),
            ("text/plain;q=0, */*", 1),
            (
                "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                1,
            ),
            ("text/plain;version=0.0.4;q=0.6,application/openmetrics-text;q=0.5", 0),
            ("application/openmetrics-text;q=nonsense", 0),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_str(accept).unwrap());
            assert_eq!(preferred(&headers, &OFFERS), expected, "for `{accept}`");
        }
        assert_eq!(preferred(&HeaderMap::new(), &OFFERS), 0);
    }

    #[test]
    fn several_headers_are_one_list() {
        let mut headers = HeaderMap::new();
        headers.append(header::ACCEPT, HeaderValue::from_static("text/plain;q=0.1"));
        headers.append(header::ACCEPT, HeaderValue::from_static("application/openmetrics-text"));
        assert_eq!(preferred(&headers, &OFFERS), 1);
    }
}
