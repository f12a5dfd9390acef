"""Somebody with a browser, for tests: keeps cookies, and sends the forms of pages."""

import re
from urllib.parse import urlsplit

HERE = "http://127.0.0.1:8000"
TOKEN = re.compile(r'name="csrf" value="([0-9a-f]+)"')


class Browser:
    """What a browser does: it keeps cookies, follows where it is sent, and says where it is."""

    def __init__(self, client, at=HERE):
        self.client, self.at = client, at
        client.base_url = at
        client.cookies.clear()

    def get(self, path, part=False, **headers):
        headers = {"Accept": "text/html", "Accept-Encoding": "gzip", **headers}
        headers |= {"HX-Request": "true"} if part else {}
        return self.client.get(f"{self.at}{path}", headers=headers, follow_redirects=False)

    def post(self, path, token=None, headers=None, **fields):
        """Send a form; the token is that of the list, unless it is said."""
        if token is None:
            token = self.token()
        sent = {"Origin": self.at, "Sec-Fetch-Site": "same-origin", "Accept": "text/html"}
        sent |= headers or {}
        sent = {name: value for name, value in sent.items() if value is not None}
        fields |= {"csrf": token} if token else {}
        return self.client.post(
            f"{self.at}{path}", data=fields, headers=sent, follow_redirects=False
        )

    def token(self, path="/"):
        return TOKEN.search(self.get(path).text)[1]

    def sign_in(self, key, following="/"):
        return self.post("/login", token="", key=key, next=following)

    @property
    def cookie(self):
        (cookie,) = self.client.cookies.jar
        return cookie


def sent_to(response):
    """Where a browser is sent, without the host."""
    assert response.status_code == 303
    found = urlsplit(response.headers["location"])
    assert found.netloc in ("", urlsplit(HERE).netloc)
    return found.path + (f"?{found.query}" if found.query else "")
