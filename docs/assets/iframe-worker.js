// Search in a site that was opened from the disk. Browsers start no worker from file://, so this
// runs the worker's script in a hidden frame, which talks to the page in the same words.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.frame = frame.contentWindow;
      this.frame.answer = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      const page = this.frame.document;
      page.open();
      page.write(
        "<script>postMessage = answer;" +
          "importScripts = (...urls) => urls.reduce((done, url) => done.then(() => new Promise(" +
          "(ready, failed) => { const script = document.createElement('script'); script.src = url;" +
          "script.onload = ready; script.onerror = failed; document.body.appendChild(script); })), " +
          "Promise.resolve());</" + "script>" +
          '<body><script src="' + new URL(url, location.href) + '"></' + "script></body>"
      );
      page.close();
      this.ready = new Promise((resolve) => this.frame.addEventListener("load", resolve));
    }
    postMessage(data) {
      this.ready.then(() => {
        const event = new MessageEvent("message", { data });
        this.frame.dispatchEvent(event);
      });
    }
    terminate() {
      this.frame.frameElement.remove();
    }
  };
}
