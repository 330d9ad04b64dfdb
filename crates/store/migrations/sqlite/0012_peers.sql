-- Nodes work for each other. A node keeps its peers, the invitations with which others become peers, and
-- the books: who did which job for whom, and at which price. An executor may be one of another node. The
-- previous binary knows none of it; it takes an executor of another node for one at an address.
create table peers (
    -- The public key of the node in hexadecimal digits.
    id text not null primary key,
    -- The operator's label.
    name text,
    -- `trusted` or `blocked`.
    standing text not null,
    -- Documents: the addresses of the node, the relays that lead to it, and the terms of both nodes.
    direct text not null,
    relays text not null,
    network text,
    terms text not null,
    added_at bigint not null,
    changed_at bigint not null
);

create table peer_invitations (
    -- The secret itself is not stored.
    secret_digest text not null primary key,
    name text,
    terms text not null,
    created_at bigint not null,
    expires_at bigint not null,
    -- The node that became a peer by it.
    used_by text
);

create index peer_invitations_by_end on peer_invitations (expires_at);

-- A job is booked once, however many rounds carry it out. A booking outlives its peer and its round.
create table peer_bookings (
    peer text not null,
    -- `earned`: this node worked for the peer; `owed`: the peer worked for this node.
    side text not null,
    -- The node whose round it is.
    origin text not null,
    execution_id text not null,
    price_micros bigint not null,
    account_id text not null,
    round_id text not null,
    booked_at bigint not null,
    primary key (peer, side, origin, execution_id)
);

-- The books are added up without reading the rows.
create index peer_bookings_by_time
on peer_bookings (peer, booked_at, side, execution_id, price_micros);

create trigger peer_bookings_never_change before update on peer_bookings
begin
    select raise(abort, 'bookings are append-only');
end;

create trigger peer_bookings_never_go before delete on peer_bookings
begin
    select raise(abort, 'bookings are append-only');
end;

alter table executors add column is_remote smallint not null default 0;
-- The node that is asked, or the scope in which one is looked for.
alter table executors add column target_node text;
alter table executors add column scope text;
