/** A service worker: without a network, it answers with the copies that the page has kept. */
addEventListener("fetch", (event) => {
  if (event.request.method !== "GET") return;
  const kept = () => caches.match(event.request, { ignoreVary: true }).then((copy) => copy ?? Response.error());
  event.respondWith(fetch(event.request).catch(kept));
});
