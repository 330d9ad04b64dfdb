//! Invitations survive being written and read, and nothing else is one.

use std::net::SocketAddr;

use jurat_mesh::{InvitationTextError, MeshInvitation, NodeAddress, node_id};
use proptest::prelude::*;

fn invitation() -> MeshInvitation {
    MeshInvitation {
        address: NodeAddress {
            id: node_id(&[7; 32]),
            direct: vec!["192.0.2.1:4242".parse().unwrap(), "[2001:db8::1]:4242".parse().unwrap()],
            relays: vec!["https://relay.example/".to_owned()],
        },
        secret: [9; 32],
        network: Some("home".to_owned()),
    }
}

fn any_invitation() -> impl Strategy<Value = MeshInvitation> {
    let address = (any::<std::net::IpAddr>(), any::<u16>()).prop_map(SocketAddr::from);
    let direct = prop::collection::vec(address, 0..=6);
    let relays = prop::collection::vec("[ -~]{0,60}", 0..=2);
    let network = prop::option::of("[^\\p{C}]{0,20}");
    (any::<[u8; 32]>(), direct, relays, any::<[u8; 32]>(), network).prop_map(
        |(seed, direct, relays, secret, network)| MeshInvitation {
            address: NodeAddress { id: node_id(&seed), direct, relays },
            secret,
            network,
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read(invitation in any_invitation()) {
        let text = invitation.to_text().unwrap();
        prop_assert!(text.starts_with("jurat"));
        prop_assert!(text.chars().all(|it| it.is_ascii_lowercase() || it.is_ascii_digit()));
        prop_assert_eq!(MeshInvitation::from_text(&format!(" {text}\n")).unwrap(), invitation);
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,300}", ours in "jurat[a-z2-7]{0,300}") {
        let _any = MeshInvitation::from_text(&text);
        let _ours = MeshInvitation::from_text(&ours);
    }

    #[test]
    fn a_changed_text_is_not_read_as_the_same(
        invitation in any_invitation(),
        at in any::<prop::sample::Index>(),
        other in "[a-z0-9]",
    ) {
        let text = invitation.to_text().unwrap();
        let at = at.index(text.len());
        let changed = format!("{}{other}{}", &text[..at], &text[at + 1..]);
        if changed != text {
            prop_assert_ne!(MeshInvitation::from_text(&changed), Ok(invitation));
        }
    }
}

#[test]
fn a_text_that_is_no_invitation_says_why() {
    let text = invitation().to_text().unwrap();
    let refusal = |text: &str| MeshInvitation::from_text(text).unwrap_err();
    assert_eq!(refusal(&text.replacen("jurat", "blob", 1)), InvitationTextError::Kind);
    assert_eq!(refusal(""), InvitationTextError::Kind);
    assert_eq!(refusal(&text[..text.len() - 8]), InvitationTextError::Unreadable);
    assert_eq!(refusal(&text.replacen("jurata", "jurat!", 1)), InvitationTextError::Unreadable);
    // Base32 in groups of eight, so that this is one more byte and no other spelling.
    let longer = format!("{text}{}", "a".repeat(8));
    assert_eq!(refusal(&longer), InvitationTextError::Trailing);
    assert_eq!(refusal(&text.to_uppercase()), InvitationTextError::Kind);
    assert_eq!(refusal(&"j".repeat(1025)), InvitationTextError::TooLong { bytes: 1025 });
}

#[test]
fn an_invitation_that_nobody_would_read_is_not_written() {
    let mut many = invitation();
    many.address.relays = vec![String::new(); 7];
    let refusal = InvitationTextError::TooManyAddresses { count: 9 };
    assert_eq!(many.to_text().unwrap_err(), refusal);
    let mut long = invitation();
    long.network = Some("x".repeat(1000));
    assert!(matches!(long.to_text().unwrap_err(), InvitationTextError::TooLong { .. }));
    let mut hidden = invitation();
    hidden.network = Some("\u{1b}[2J".to_owned());
    assert_eq!(hidden.to_text().unwrap_err(), InvitationTextError::Control);
    let mut nobody = invitation();
    nobody.address.id = "nobody".to_owned();
    assert!(matches!(nobody.to_text().unwrap_err(), InvitationTextError::Node(_)));
}

#[test]
fn the_secret_is_not_shown() {
    let shown = format!("{:?}", MeshInvitation { secret: [171; 32], ..invitation() });
    assert!(shown.contains("192.0.2.1:4242") && !shown.contains("171"), "{shown}");
}
