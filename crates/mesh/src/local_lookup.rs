//! Finds nodes on the local network, by their addresses there and by nothing else.

use futures::{StreamExt as _, stream::BoxStream};
use iroh::{
    Endpoint, EndpointId, TransportAddr,
    address_lookup::{
        AddressLookup, AddressLookupBuilder, AddressLookupBuilderError, EndpointData, EndpointInfo,
        Error, Item,
    },
};
use iroh_mdns_address_lookup::MdnsAddressLookup;

const SERVICE: &str = "jurat";

/// Asks for the lookup when the endpoint is built.
#[derive(Debug)]
pub(crate) struct FindLocal;

#[derive(Debug)]
struct LocalLookup(MdnsAddressLookup);

impl AddressLookupBuilder for FindLocal {
    fn into_address_lookup(
        self,
        endpoint: &Endpoint,
    ) -> Result<impl AddressLookup, AddressLookupBuilderError> {
        MdnsAddressLookup::builder().service_name(SERVICE).build(endpoint.id()).map(LocalLookup)
    }
}

impl AddressLookup for LocalLookup {
    fn publish(&self, data: &EndpointData) {
        self.0.publish(&without_relays(data));
    }

    /// Anybody on the network can announce anything. A relay among it would be an address that this
    /// node calls over HTTP.
    fn resolve(&self, id: EndpointId) -> Option<BoxStream<'static, Result<Item, Error>>> {
        let found = self.0.resolve(id)?;
        Some(found.map(|item| item.map(|item| direct_only(&item))).boxed())
    }
}

fn direct_only(item: &Item) -> Item {
    let info = EndpointInfo::from_parts(item.endpoint_id(), without_relays(item));
    Item::new(info, item.provenance(), item.last_updated())
}

fn without_relays(data: &EndpointData) -> EndpointData {
    data.ip_addrs().copied().map(TransportAddr::Ip).collect()
}
