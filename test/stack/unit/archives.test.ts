import { checkHash, MONGODB_ARCHIVES, TEMPORAL_ARCHIVES } from '../../../stack/provision/archives';
import { download } from '../../../stack/provision/download';

const all = [TEMPORAL_ARCHIVES, MONGODB_ARCHIVES].flatMap((archives) => Object.entries(archives));

test.each(all)('the archive for %s is fetched by https and known by its hash', (_, archive) => {
  expect(archive?.url).toMatch(/^https:\/\/(github\.com|fastdl\.mongodb\.org)\//);
  expect(archive?.sha256).toMatch(/^[0-9a-f]{64}$/);
  expect(all.filter(([, { sha256 } = {}]) => sha256 === archive?.sha256)).toHaveLength(1);
});

test('an archive with another hash than the known one is refused by its URL', () => {
  const known = { url: 'https://example.com/a.tgz', sha256: 'ab' };
  expect(() => checkHash('cd', known)).toThrow('https://example.com/a.tgz has the SHA-256 cd');
  expect(() => checkHash('ab', known)).not.toThrow();
});

test('nothing is downloaded without TLS', async () => {
  const { signal } = new AbortController();
  const archive = download('http://127.0.0.1:1/a.tgz', '/dev/null', { say: () => {} }, signal);
  await expect(archive).rejects.toThrow('127.0.0.1:1 has no https URL');
});
