/** How Jest and the shared product's process compile the sources. */
exports.jsc = {
  target: 'es2022',
  parser: { syntax: 'typescript', tsx: true },
  transform: { react: { runtime: 'automatic', importSource: 'preact' } },
};
