/**
 * Reduces the OpenAPI document to the shapes that the clients have types for: bodies, query parameters,
 * successful answers, webhooks, and the codes of errors.
 */
export function reduceDocument({ openapi, info, paths, webhooks, components }) {
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
  const events = Object.values(webhooks).map(({ post }) => readSchema(post.requestBody));
  // Errors are classes of the clients, which have their own.
  const { Error: _, ...named } = components.schemas;
  const schemas = {
    ...named,
    ...Object.assign({}, ...operations.map(nameShapes)),
    WebhookEvent: { anyOf: events },
    ErrorCode: { type: 'string', enum: Object.keys(components.examples).sort() },
  };
  return {
    openapi,
    info: { title: info.title, version: info.version },
    paths: {},
    components: { schemas: mapValues(schemas, simplify) },
  };
}

/** Shapes of an operation that the document has no name for. */
function nameShapes({ operationId, parameters, responses }) {
  const name = `${operationId.slice(0, 1).toUpperCase()}${operationId.slice(1)}`;
  const query = parameters.filter((parameter) => parameter.in === 'query');
  const [, success] = Object.entries(responses).find(([status]) => status.startsWith('2'));
  const answer = readSchema(success);
  const isNamed = answer === undefined || answer.$ref !== undefined;
  return {
    ...(query.length > 0 && { [`${name}Query`]: describeQuery(query) }),
    ...(!isNamed && { [`${name}Answer`]: answer }),
  };
}

function describeQuery(parameters) {
  const properties = parameters.map(({ name, description, schema }) => {
    // A default would make the field required, as it is in answers.
    const { default: _, ...rest } = schema;
    return [name, { description, ...rest }];
  });
  return { type: 'object', properties: Object.fromEntries(properties) };
}

function readSchema({ content }) {
  return content?.['application/json'].schema;
}

const LEFT_OUT = new Set(['example', 'examples', 'format', 'pattern', 'minimum', 'maximum']);

/** Drops what types do not express. A field of such a name stays: its value is a schema. */
function simplify(value) {
  if (Array.isArray(value)) return value.map(simplify);
  if (typeof value !== 'object' || value === null) return value;
  const isSchema = (inner) =>
    typeof inner === 'object' && !Array.isArray(inner) && ('type' in inner || '$ref' in inner);
  const fields = Object.entries(value).filter(
    ([name, inner]) => !LEFT_OUT.has(name) || isSchema(inner),
  );
  return mapValues(Object.fromEntries(fields), simplify);
}

function mapValues(object, change) {
  return Object.fromEntries(Object.entries(object).map(([name, value]) => [name, change(value)]));
}
