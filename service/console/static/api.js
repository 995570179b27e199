// Talks to the service. Whatever goes wrong becomes a ProblemError: an RFC 9457 problem that can be shown.

const KEY = "portcullis.token";

export const token = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set(value) {
    if (value) sessionStorage.setItem(KEY, value);
    else sessionStorage.removeItem(KEY);
  },
};

export class ProblemError extends Error {
  constructor(problem) {
    super(problem.title);
    this.problem = problem;
  }
}

const authorization = () => (token.get() ? { Authorization: `Bearer ${token.get()}` } : {});

/** The answer to a request, or a ProblemError. */
async function request(method, path, { headers = {}, body, signal } = {}) {
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers: { ...authorization(), ...headers },
      body,
      signal,
      cache: "no-store",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ProblemError({
      title: "The service does not answer",
      detail: "It may be stopped, or the network is down.",
    });
  }
  if (!answer.ok) throw new ProblemError(parsed(await answer.text(), answer.status));
  return answer;
}

function parsed(text, status) {
  try {
    const problem = JSON.parse(text);
    if (problem.title) return problem;
  } catch {
    // Something between us and the service has answered.
  }
  return { title: `The service answered with status ${status}`, status };
}

const json = async (method, path, options) => (await request(method, path, options)).json();

export const get = (path, signal) => json("GET", path, { signal });

export const remove = (path) => request("DELETE", path);
export const post = (path) => request("POST", path);

export const getText = async (path, accept) => (await request("GET", path, { headers: { Accept: accept } })).text();

function formOf(parts) {
  const form = new FormData();
  for (const [name, part] of Object.entries(parts)) for (const one of [part].flat()) form.append(name, one);
  return form;
}

/** Send small parts. */
export const send = (method, path, parts) => request(method, path, { body: formOf(parts) });

/** Send parts, with the share of them that is on its way told to `progress`. */
export function upload(path, parts, headers = {}, progress = () => {}) {
  return new Promise((resolve, reject) => {
    const sending = new XMLHttpRequest();
    sending.open("POST", path);
    for (const [name, value] of Object.entries({ ...authorization(), ...headers }))
      sending.setRequestHeader(name, value);
    sending.upload.onprogress = (event) => progress(event.loaded / event.total);
    sending.onerror = () =>
      reject(
        new ProblemError({
          title: "The upload was interrupted",
          detail: "The service may have refused its size, or is stopped.",
        }),
      );
    sending.onload = () => {
      if (sending.status < 300) resolve(JSON.parse(sending.responseText));
      else reject(new ProblemError(parsed(sending.responseText, sending.status)));
    };
    sending.send(formOf(parts));
  });
}

/** Save what a path answers as a file. */
export async function download(path, accept, name) {
  const content = await (await request("GET", path, { headers: { Accept: accept } })).blob();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** The data of server-sent events, one by one. EventSource cannot send a token, so the stream is read here. */
export async function* events(path, signal) {
  const answer = await request("GET", path, { headers: { Accept: "text/event-stream" }, signal });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).replaceAll("\r\n", "\n").split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const data = block
        .split("\n")
        .filter((line) => line.startsWith("data:"))
        .map((line) => line.slice(5).trim());
      if (data.length) yield JSON.parse(data.join("\n"));
    }
  }
}
