"""The usual asyncio pool, as a fair peer: one semaphore per exit, pick among the half that holds the
fewest leases, then wait at the semaphore. What waits is not counted: pools in the field count what
is in flight. Words: PROXIES URLS OUT PER_EXIT CA [WORKERS]; else as many workers as slots."""
import asyncio, random, ssl, sys
import aiohttp


class Exit:
    def __init__(self, url, slots, context):
        self.url, self.held = url, 0
        self.slots = asyncio.Semaphore(slots)
        self.session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=slots, ssl=context))

    async def fetch(self, url, path):
        async with self.slots:
            self.held += 1
            try:
                async with self.session.get(url, proxy=self.url) as response:
                    body = await response.read()
                    if response.status == 200:
                        with open(path, "wb") as file:
                            file.write(body)
            finally:
                self.held -= 1


async def main(proxies, urls, out, slots, ca, workers=0):
    context = ssl.create_default_context(cafile=ca)
    exits = [Exit(line.strip(), int(slots), context) for line in open(proxies)]
    jobs = enumerate(line.strip() for line in open(urls))

    async def worker():
        for n, url in jobs:
            half = sorted(exits, key=lambda exit: exit.held)[: max(1, len(exits) // 2)]
            await random.choice(half).fetch(url, f"{out}/{n}")

    await asyncio.gather(*(worker() for _ in range(int(workers) or len(exits) * int(slots))))
    for exit in exits:
        await exit.session.close()


asyncio.run(main(*sys.argv[1:]))
