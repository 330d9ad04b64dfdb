//! What a node binds, and what it says about itself.

use std::{collections::BTreeSet, fs, net::SocketAddr};

use jurat_mesh::{Mesh, MeshError, MeshLimits, MeshSettings, node_id};

use crate::node::{ask, echoed, node, settings, with_echo};

/// The inodes of the sockets that this process has open.
fn own_sockets() -> BTreeSet<String> {
    let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let targets = open.filter_map(|it| fs::read_link(it.path()).ok());
    let names = targets.filter_map(|it| it.to_str().map(str::to_owned));
    names
        .filter_map(|it| Some(it.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect()
}

/// The addresses of this process's UDP sockets that anybody may send to, as the kernel writes them.
fn listening_on(table: &str) -> BTreeSet<String> {
    let own = own_sockets();
    let text = fs::read_to_string(table).unwrap_or_default();
    let rows = text.lines().skip(1).map(|line| line.split_whitespace().collect::<Vec<_>>());
    let open = rows.filter(|row| own.contains(row[9]) && row[2].ends_with(":0000"));
    open.map(|row| row[1].to_owned()).collect()
}

#[tokio::test]
async fn only_the_named_address_is_bound() {
    let (mesh, _requests) = node(1).await;
    let [SocketAddr::V4(address)] = mesh.address().direct[..] else {
        panic!("{:?}", mesh.address());
    };
    assert!(address.ip().is_loopback());
    let expected = format!("0100007F:{:04X}", address.port());
    assert_eq!(listening_on("/proc/net/udp"), BTreeSet::from([expected]));
    assert_eq!(listening_on("/proc/net/udp6"), BTreeSet::new());
}

#[tokio::test]
async fn several_addresses_of_one_family_are_bound() {
    let listen = vec!["127.0.0.1:0".parse().unwrap(), "127.0.0.2:0".parse().unwrap()];
    let two = MeshSettings { listen, ..settings(2, MeshLimits::default()) };
    let (server, mut requests) = Mesh::bind(two).await.unwrap();
    crate::node::admit_all(&server);
    let address = server.address();
    assert_eq!(address.direct.len(), 2);
    for (seed, direct) in [1, 3].into_iter().zip(address.direct.clone()) {
        let (client, _) = node(seed).await;
        let to = jurat_mesh::NodeAddress { direct: vec![direct], ..address.clone() };
        assert_eq!(with_echo(&mut requests, ask(&client, &to)).await, Ok(echoed()));
    }
}

#[tokio::test]
async fn a_node_that_listens_everywhere_names_the_addresses_of_the_machine() {
    let listen = vec!["0.0.0.0:0".parse().unwrap()];
    let everywhere = MeshSettings { listen, ..settings(1, MeshLimits::default()) };
    let (mesh, _requests) = Mesh::bind(everywhere).await.unwrap();
    let direct = mesh.address().direct;
    assert!(!direct.is_empty());
    assert!(direct.iter().all(|it| it.is_ipv4() && !it.ip().is_unspecified() && it.port() != 0));
}

#[tokio::test]
async fn a_node_has_the_id_of_its_seed() {
    let (mesh, _requests) = node(7).await;
    assert_eq!(mesh.id(), node_id(&[7; 32]));
    assert_eq!(mesh.address().id, mesh.id());
    let shown = format!("{:?}", settings(171, MeshLimits::default()));
    assert!(shown.contains("127.0.0.1:0") && !shown.contains("171"), "{shown}");
}

#[tokio::test]
async fn a_port_that_is_taken_is_an_error() {
    let taken = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let listen = vec![taken.local_addr().unwrap()];
    let error = Mesh::bind(MeshSettings { listen, ..settings(1, MeshLimits::default()) }).await;
    assert!(matches!(error, Err(MeshError::Bind { .. })));
    let nothing = MeshSettings { listen: Vec::new(), ..settings(1, MeshLimits::default()) };
    assert!(matches!(Mesh::bind(nothing).await, Err(MeshError::NoAddress)));
    let relays = vec!["no relay".to_owned()];
    let unreadable = MeshSettings { relays, ..settings(1, MeshLimits::default()) };
    assert!(matches!(Mesh::bind(unreadable).await, Err(MeshError::Relay { .. })));
}
