const SCHEMA = 'https://schema.getpostman.com/json/collection/v2.1.0/collection.json';

/** Builds a Postman collection: a folder for each tag, a request with an example for each operation. */
export function buildCollection(api) {
  const operations = listOperations(api);
  const folders = api.tags.map(({ name, description }) => ({
    name,
    description,
    item: operations.filter(({ tags }) => tags.includes(name)).map(buildRequest),
  }));
  return {
    info: { name: 'durable-payments', schema: SCHEMA, version: api.info.version },
    auth: { type: 'bearer', bearer: [{ key: 'token', value: '{{api_key}}', type: 'string' }] },
    variable: [
      { key: 'base_url', value: api.servers[0].url },
      { key: 'api_key', value: '' },
    ],
    item: folders.filter(({ item }) => item.length > 0),
  };
}

/** Lists what a merchant can call, with its method and path. */
export function listOperations({ paths }) {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ ...operation, method, path })),
  );
}

function buildRequest({ method, path, summary, description, parameters = [], requestBody }) {
  const body = requestBody?.content['application/json'].example;
  const inPlace = (place) => parameters.filter((parameter) => parameter.in === place);
  const headers = [
    ...(body === undefined ? [] : [{ key: 'Content-Type', value: 'application/json' }]),
    ...inPlace('header').map(({ name }) => ({ key: name, value: '{{$guid}}' })),
  ];
  const query = inPlace('query').map(({ name, description }) => {
    return { key: name, value: '', description, disabled: true };
  });
  return {
    name: summary,
    request: {
      method: method.toUpperCase(),
      description,
      header: headers,
      url: {
        raw: `{{base_url}}${path.replace(/\{(\w+)\}/g, ':$1')}`,
        host: ['{{base_url}}'],
        path: path
          .slice(1)
          .replace(/\{(\w+)\}/g, ':$1')
          .split('/'),
        query,
        variable: inPlace('path').map(({ name }) => ({ key: name, value: '' })),
      },
      ...(body !== undefined && { body: { mode: 'raw', raw: JSON.stringify(body, null, 2) } }),
    },
  };
}
