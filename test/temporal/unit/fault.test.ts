import { NamespaceNotFoundError } from '@temporalio/common';
import { findConfigFault, findConnectFault } from '../../../src/temporal/fault';

/** An error as the gRPC client throws it. */
function grpcError(code: number, details: string): Error {
  return Object.assign(new Error(details), { code, details, metadata: {} });
}

test.each([
  [16, 'Request unauthorized.', /TEMPORAL_API_KEY, TEMPORAL_TLS_…\): Request unauthorized/],
  [7, 'Request unauthorized.', /TEMPORAL_API_KEY\): Request unauthorized/],
  [5, 'Namespace shop is not found.', /TEMPORAL_NAMESPACE/],
  [3, 'Namespace shop has no mapping defined for search attribute X', /`migrate` registers it/],
])('gRPC %i, "%s", is a fault of the configuration', (code, details, words) => {
  const error = grpcError(code, details);
  expect(findConfigFault(error)?.message).toMatch(words);
  expect(findConfigFault(new Error('Failed', { cause: error }))?.cause).toBe(error);
});

test.each([
  [14, 'No connection established. Last error: connect ECONNREFUSED 127.0.0.1:7233'],
  [4, 'Deadline exceeded'],
  [8, 'namespace rate limit exceeded'],
  [5, 'workflow not found for ID: payment:1'],
  [3, 'WorkflowId is not set on request.'],
])('gRPC %i, "%s", is none', (code, details) => {
  expect(findConfigFault(grpcError(code, details))).toBeUndefined();
});

test('TLS that fails is a fault while a process connects, and may pass later', () => {
  const error = grpcError(14, 'No connection established. Last error: certificate has expired');
  expect(findConnectFault(error)?.message).toMatch(/TEMPORAL_TLS_….*expired/);
  expect(findConfigFault(error)).toBeUndefined();
  const away = grpcError(14, 'No connection established. Last error: connect ECONNREFUSED');
  expect(findConnectFault(away)).toBeUndefined();
});

test('a namespace that the SDK could not find is a fault, any other value is none', () => {
  expect(findConfigFault(new NamespaceNotFoundError('shop'))?.message).toContain('namespace shop');
  expect(findConfigFault(undefined)).toBeUndefined();
});
