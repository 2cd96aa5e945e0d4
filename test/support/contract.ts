import Ajv2020 from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import { z } from 'zod';

interface ApiResponse {
  status: number;
  headers: Headers;
  body: unknown;
}

const Content = z.object({ 'application/json': z.object({ schema: z.unknown() }) });
const Operation = z.object({
  responses: z.record(
    z.string(),
    z.object({ headers: z.record(z.string(), z.unknown()).optional(), content: Content }),
  ),
});
const Webhook = z.object({ post: z.object({ requestBody: z.object({ content: Content }) }) });
const Document = z.object({
  paths: z.record(z.string(), z.record(z.string(), Operation)),
  webhooks: z.record(z.string(), Webhook),
});
type Document = z.infer<typeof Document>;

const documents = new Map<string, Promise<Document>>();
/** The document under this name; what several answers refer to is compiled once. */
const DOCUMENT = 'openapi';
const SCHEMA = ['content', 'application/json', 'schema'];
// The schemas' own form is held by test/api/openapi.test.ts, and is long to look at.
const options = { strict: false, allErrors: true, validateSchema: false };
// A test checks a few answers: to optimize the code of a schema takes longer than it saves.
const ajv = addFormats(new Ajv2020({ ...options, code: { optimize: false } }));

/** Fails when an answer of the API is not what `/openapi.json` says of it. */
export async function assertContract(
  url: string,
  method: string,
  path: string,
  answer: ApiResponse,
): Promise<void> {
  const pathname = path.split('?', 1)[0] ?? path;
  if (!pathname.startsWith('/v1/')) return;
  const document = await documentAt(url);
  for (const header of ['request-id', 'service-version']) {
    if (!answer.headers.has(header)) throw new Error(`${method} ${path} lacks ${header}`);
  }
  const template = Object.keys(document.paths).find((each) => matches(each, pathname));
  const operation = template && document.paths[template]?.[method.toLowerCase()];
  const what = `${method} ${path} answered ${answer.status}`;
  if (!template || !operation) return check(['components', 'schemas', 'Error'], what, answer.body);
  const status = String(answer.status);
  if (operation.responses[status] === undefined) {
    throw new Error(`${method} ${template} does not document ${status}`);
  }
  const response = ['paths', template, method.toLowerCase(), 'responses', status];
  check([...response, ...SCHEMA], what, answer.body);
}

/** Fails when the body of a webhook is not what `/openapi.json` says of its type. */
export async function assertWebhook(url: string, type: string, body: unknown): Promise<void> {
  const document = await documentAt(url);
  if (document.webhooks[type] === undefined) throw new Error(`There is no webhook ${type}`);
  const webhook = ['webhooks', type, 'post', 'requestBody'];
  check([...webhook, ...SCHEMA], `The body of ${type} is`, body);
}

function documentAt(url: string): Promise<Document> {
  const existing = documents.get(url);
  if (existing !== undefined) return existing;
  const request = fetch(`${url}/openapi.json`)
    .then((response) => response.json())
    .then((json) => {
      // Each product serves the same document; two may be read at once.
      if (!(DOCUMENT in ajv.schemas)) ajv.addSchema(json, DOCUMENT);
      return Document.parse(json);
    });
  documents.set(url, request);
  return request;
}

/** `/available` precedes `/{id}` in the document, so that `find` returns it first. */
function matches(template: string, pathname: string): boolean {
  const pattern = template.replace(/[.]/g, '\\.').replace(/\{\w+\}/g, '[^/]+');
  return new RegExp(`^${pattern}$`).test(pathname);
}

/** @param place where the document has the schema of the body */
function check(place: string[], what: string, body: unknown): void {
  const pointer = place.map((part) => `/${encodeURIComponent(part.replaceAll('/', '~1'))}`);
  const validate = ajv.getSchema(`${DOCUMENT}#${pointer.join('')}`);
  if (validate === undefined) throw new Error(`The document has no ${pointer.join('')}`);
  if (validate(body)) return;
  const faults = (validate.errors ?? []).map((e) => `${e.instancePath} ${e.message}`).join('; ');
  throw new Error(`${what} against its document: ${faults}`);
}
