# body.json has the body exactly as received,
# and SIGNATURE the header Service-Signature.
t=${SIGNATURE#t=}
t=${t%%,*}
v1=${SIGNATURE##*,v1=}
hmac=$(printf '%s.' "$t" | cat - body.json |
  openssl dgst -sha256 -hmac "${SIGNING_SECRET:?}" -r)
if [ "${hmac%% *}" = "$v1" ] && [ $(($(date +%s) - t)) -le 300 ]; then
  echo genuine
else
  echo refused
fi
