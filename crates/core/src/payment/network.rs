//! The networks on which payments are accepted, each with its token.

use std::str::FromStr;

use crate::round::job::words;

words!(
    /// A network, by its name in version 1 of the protocol.
    PaymentNetwork { Base => "base", BaseSepolia => "base-sepolia" }
);

impl PaymentNetwork {
    /// The name in version 2 of the protocol (CAIP-2).
    pub const fn caip2(self) -> &'static str {
        match self {
            Self::Base => "eip155:8453",
            Self::BaseSepolia => "eip155:84532",
        }
    }

    /// The number of the chain, which its nodes name.
    pub const fn chain_id(self) -> u64 {
        match self {
            Self::Base => 8_453,
            Self::BaseSepolia => 84_532,
        }
    }

    /// The contract of the token, which is USDC. One base unit is a millionth of a dollar.
    pub const fn asset(self) -> &'static str {
        match self {
            Self::Base => "0x833589fcd6edb6e08f4c7c32d4f71b54bda02913",
            Self::BaseSepolia => "0x036cbd53842c5426634e7929541ec2318f3dcf7e",
        }
    }

    /// The name of the token in the data that payers sign (EIP-712).
    pub const fn asset_name(self) -> &'static str {
        match self {
            Self::Base => "USD Coin",
            Self::BaseSepolia => "USDC",
        }
    }

    /// The version of the token in the data that payers sign.
    pub const fn asset_version(self) -> &'static str {
        match self {
            Self::Base | Self::BaseSepolia => "2",
        }
    }

    /// The network that a text names, in the words of either version.
    pub fn named(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|network| network.is_named(text))
    }

    /// Whether a text names the network, in the words of either version.
    pub fn is_named(self, text: &str) -> bool {
        text == self.as_str() || text == self.caip2()
    }
}
