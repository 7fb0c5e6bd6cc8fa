// Keeps the page for a visit without a network. Names carry hashes, so what is kept never ages; a
// new version is a new cache, and the old one goes when it takes over.
const version = "VERSION";
const files = ["FILES"];
const cacheName = `lathe-${version}`;

self.addEventListener("install", (event) => {
  const keep = async () => {
    const cache = await caches.open(cacheName);
    await cache.addAll(files.map((file) => new Request(file, { cache: "no-cache" })));
    await self.skipWaiting();
  };
  event.waitUntil(keep());
});

self.addEventListener("activate", (event) => {
  const sweep = async () => {
    for (const name of await caches.keys())
      if (name.startsWith("lathe-") && name !== cacheName) await caches.delete(name);
    await self.clients.claim();
  };
  event.waitUntil(sweep());
});

// The page itself comes from the network when there is one, so that a new version is seen at once.
self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.method !== "GET" || new URL(request.url).origin !== self.location.origin) return;
  const isPage = request.mode === "navigate";
  const answer = async () => {
    const cache = await caches.open(cacheName);
    const kept = await cache.match(isPage ? "./" : request);
    if (kept && !isPage) return kept;
    try {
      return await fetch(request);
    } catch (error) {
      if (kept) return kept;
      throw error;
    }
  };
  event.respondWith(answer());
});
