import Ajv2020, { type ValidateFunction } from 'ajv/dist/2020';
import addFormats from 'ajv-formats';
import { z } from 'zod';

/** Parts of an answer that the check needs. */
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
  components: z.object({ schemas: z.record(z.string(), z.unknown()) }),
});
type Document = z.infer<typeof Document>;

const documents = new Map<string, Promise<Document>>();
const validators = new Map<string, ValidateFunction>();
// The schemas' own form is held by test/api/openapi.test.ts, and is long to look at.
const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false });
addFormats(ajv);

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
  if (!template || !operation) {
    return check(document, 'Error', document.components.schemas['Error'], what, answer.body);
  }
  const response = operation.responses[String(answer.status)];
  if (response === undefined) {
    throw new Error(`${method} ${template} does not document ${answer.status}`);
  }
  const { schema } = response.content['application/json'];
  check(document, `${method} ${template} ${answer.status}`, schema, what, answer.body);
}

/** Fails when the body of a webhook is not what `/openapi.json` says of its type. */
export async function assertWebhook(url: string, type: string, body: unknown): Promise<void> {
  const document = await documentAt(url);
  const webhook = document.webhooks[type];
  if (webhook === undefined) throw new Error(`There is no webhook ${type}`);
  const { schema } = webhook.post.requestBody.content['application/json'];
  check(document, `webhook ${type}`, schema, `The body of ${type} is`, body);
}

function documentAt(url: string): Promise<Document> {
  const existing = documents.get(url);
  if (existing !== undefined) return existing;
  const request = fetch(`${url}/openapi.json`)
    .then((response) => response.json())
    .then((json) => Document.parse(json));
  documents.set(url, request);
  return request;
}

/** `/available` precedes `/{id}` in the document, so that `find` returns it first. */
function matches(template: string, pathname: string): boolean {
  const pattern = template.replace(/[.]/g, '\\.').replace(/\{\w+\}/g, '[^/]+');
  return new RegExp(`^${pattern}$`).test(pathname);
}

function check(
  { components }: Document,
  name: string,
  schema: unknown,
  what: string,
  body: unknown,
): void {
  const validate = validators.get(name) ?? ajv.compile({ ...Object(schema), components });
  validators.set(name, validate);
  if (validate(body)) return;
  const faults = (validate.errors ?? []).map((e) => `${e.instancePath} ${e.message}`).join('; ');
  throw new Error(`${what} against its document: ${faults}`);
}
