/** Writes the API reference as pages of the site, which its search and its colors cover. */
import { listOperations } from './postman.mjs';

/** Path of a tag's page in the site, without its ending. */
export const referencePath = (name) => `reference/${name.toLowerCase().replaceAll(' ', '-')}`;

const VARIABLES =
  'In the examples, `BASE` is the address of the API and `KEY` is ' +
  '[your key](../guides/start.md#the-key-and-the-address).';

/** @returns a page for each tag of the document, by its path */
export function referencePages(api) {
  const operations = listOperations(api);
  return Object.fromEntries(
    api.tags.map(({ name, description }) => {
      const own = operations.filter(({ tags }) => tags.includes(name));
      const events = Object.entries(api.webhooks).filter(([, { post }]) =>
        post.tags.includes(name),
      );
      const parts = [
        `# ${name}`,
        description,
        ...(own.length > 0 ? [VARIABLES] : []),
        ...own.map((operation) => describeOperation(operation, api)),
        ...events.map(([type, { post }]) => describeEvent(type, post, api)),
      ];
      return [`${referencePath(name)}.md`, `${parts.join('\n\n')}\n`];
    }),
  );
}

function describeOperation(operation, api) {
  const { method, path, summary, description, parameters = [], requestBody, responses } = operation;
  const [status, success] = Object.entries(responses)[0];
  const body = requestBody?.content['application/json'];
  const scope = operation['x-required-scope'];
  const answer = success.content['application/json'];
  return [
    `## ${summary}`,
    `\`${method.toUpperCase()} ${path}\`${scope === undefined ? '' : ` with the scope \`${scope}\``}`,
    description,
    ...section('Parameters', table(parameters.map((each) => parameterRow(each, api)))),
    ...section('Body', body && table(fieldRows(body.schema, api))),
    curl(operation, body?.example),
    `**Response ${status}:** ${success.description}`,
    fence('json', JSON.stringify(answer.example, null, 2)),
    ...section('Response fields', table(fieldRows(answer.schema, api))),
    ...section('Errors', errorList(responses)),
  ].join('\n\n');
}

function describeEvent(type, { requestBody }, api) {
  const { example, schema } = requestBody.content['application/json'];
  const fields = table(fieldRows(schema, api));
  return [`## ${type}`, fence('json', JSON.stringify(example, null, 2)), fields].join('\n\n');
}

const section = (title, text) => (text ? [`**${title}**`, text] : []);
const fence = (language, text) => `\`\`\`${language}\n${text}\n\`\`\``;

function table(rows) {
  if (rows.length === 0) return '';
  const lines = rows.map((cells) => `| ${cells.map(escapeCell).join(' | ')} |`);
  return ['| Name | Type | Meaning |', '| --- | --- | --- |', ...lines].join('\n');
}

function escapeCell(text) {
  return text.replace(/\s+/g, ' ').replaceAll('|', '\\|');
}

function parameterRow({ name, schema, required, description = '', in: place }, api) {
  return [`\`${name}\``, `${describeType(schema, api)}, ${place}`, withNeed(description, required)];
}

const withNeed = (description, isRequired) => `${isRequired ? 'Required. ' : ''}${description}`;

/** Fields of an object, and those of the objects in it under `outer.inner`. */
function fieldRows(schema, api, prefix = '', depth = 0) {
  const { properties = {}, required = [], items } = mergeKinds(resolve(schema, api), api);
  if (items !== undefined) return fieldRows(items, api, `${prefix}[].`, depth + 1);
  return Object.entries(properties).flatMap(([name, field]) => {
    const resolved = resolve(field, api);
    const row = [
      `\`${prefix}${name}\``,
      describeType(field, api),
      withNeed(describeField(resolved), required.includes(name)),
    ];
    const inner = resolved.anyOf?.find((each) => resolve(each, api).properties) ?? resolved;
    const rows = depth < 2 ? fieldRows(inner, api, `${prefix}${name}.`, depth + 1) : [];
    return [row, ...(resolved.items ? listRows(resolved, api, `${prefix}${name}`, depth) : rows)];
  });
}

/** A field that can have several types has the descriptions of all. */
function describeField({ description, anyOf = [] }) {
  if (description !== undefined) return description;
  return [...new Set(anyOf.map((each) => each.description).filter(Boolean))].join(' ');
}

/** Shows objects of several kinds as one, with the types that a field has in each. */
function mergeKinds(schema, api) {
  const kinds = (schema.anyOf ?? []).map((each) => resolve(each, api));
  if (kinds.length < 2 || !kinds.every(({ properties }) => properties)) return schema;
  const names = new Set(kinds.flatMap(({ properties }) => Object.keys(properties)));
  const merge = (name) => {
    const fields = kinds.flatMap(({ properties }) => properties[name] ?? []);
    const [first] = fields;
    const isSame = fields.every((each) => JSON.stringify(each) === JSON.stringify(first));
    return isSame ? first : { anyOf: fields };
  };
  return {
    properties: Object.fromEntries([...names].map((name) => [name, merge(name)])),
    required: [...names].filter((name) => kinds.every((each) => each.required?.includes(name))),
  };
}

function listRows({ items }, api, name, depth) {
  return depth < 2 ? fieldRows(items, api, `${name}[].`, depth + 1) : [];
}

function resolve(schema, api) {
  const name = schema.$ref?.replace('#/components/schemas/', '');
  return name === undefined ? schema : { ...api.components.schemas[name], ...schema };
}

function describeType(schema, api) {
  const { type, enum: values, const: only, anyOf, items, format, ...limits } = resolve(schema, api);
  if (only !== undefined) return `\`${JSON.stringify(only)}\``;
  if (values !== undefined) return values.map((value) => `\`${value}\``).join(', ');
  if (anyOf !== undefined) return anyOf.map((each) => describeType(each, api)).join(' or ');
  if (items !== undefined) return `list of ${describeType(items, api)}`;
  const notes = [format, describeLimits(limits)].filter(Boolean).join(', ');
  return [type ?? 'any'].flat().join(' or ') + (notes === '' ? '' : ` (${notes})`);
}

/** Bounds that a caller meets; a bound of the number type is none. */
function describeLimits({ minimum, maximum, maxLength }) {
  if (maxLength !== undefined) return `up to ${maxLength} characters`;
  if (minimum === undefined || maximum === undefined) return '';
  return maximum < Number.MAX_SAFE_INTEGER ? `${minimum} to ${maximum}` : '';
}

function curl({ method, path, parameters = [] }, example) {
  const hasKey = parameters.some(({ name }) => name === 'Idempotency-Key');
  const lines = [
    `curl -sS ${method === 'get' ? '' : `-X ${method.toUpperCase()} `}"$BASE${path}"`,
    '-H "Authorization: Bearer $KEY"',
    ...(hasKey ? ['-H "Idempotency-Key: $(uuidgen)"'] : []),
    ...(example === undefined ? [] : ['-H "Content-Type: application/json"']),
    ...(example === undefined ? [] : [`-d '${JSON.stringify(example).replaceAll("'", "'\\''")}'`]),
  ];
  return fence('sh', lines.join(' \\\n  '));
}

function errorList(responses) {
  return Object.entries(responses)
    .filter(([status]) => Number(status) >= 400)
    .map(([status, { description }]) => `- ${status}: ${description}`)
    .join('\n');
}
