"""Pays for one request with the official Python client: pay.py URL KEY BODY."""

import asyncio
import base64
import json
import sys

from eth_account import Account
from x402 import x402Client
from x402.http.clients import x402HttpxClient
from x402.mechanisms.evm import EthAccountSigner
from x402.mechanisms.evm.exact.register import register_exact_evm_client


async def main(url, key, body):
    client = x402Client()
    register_exact_evm_client(client, EthAccountSigner(Account.from_key(key)))
    async with x402HttpxClient(client, timeout=60) as http:
        headers = {"content-type": "application/json"}
        response = await http.post(url, content=body, headers=headers)
        await response.aread()
        receipt = response.headers.get("payment-response")
        receipt = json.loads(base64.b64decode(receipt)) if receipt else None
        print(json.dumps({"status": response.status_code, "receipt": receipt}))


asyncio.run(main(*sys.argv[1:]))
