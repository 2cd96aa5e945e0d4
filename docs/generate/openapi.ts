import { openApiDocument } from '../../src/api/openapi';

/** Address of `npm start`, in the OpenAPI document that the clients are made from. */
const BASE_URL = 'http://localhost:8080';

/** Document of `/openapi.json`, as the file `clients/openapi.json` has it. */
export function openApiText(): string {
  return `${JSON.stringify(openApiDocument(BASE_URL), null, 2)}\n`;
}
