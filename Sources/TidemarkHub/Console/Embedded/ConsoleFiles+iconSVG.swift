// Written by tools/embed-console. Change the file in Static, then run that.

extension ConsoleFiles {
    static let iconSVG = ConsoleFile(
        "icon.svg",
        base64: """
            PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciIHZpZXdCb3g9IjAgMCAyNCAyNCI+Cjxy\
            ZWN0IHdpZHRoPSIyNCIgaGVpZ2h0PSIyNCIgcng9IjUiIGZpbGw9IiMwYjZlNzgiLz4KPHBhdGggZD0iTTMg\
            MTBjMyAwIDMtMyA2LTNzMyAzIDYgMyAzLTMgNi0zIiBmaWxsPSJub25lIiBzdHJva2U9IiNmZmYiIHN0cm9r\
            ZS13aWR0aD0iMiIgc3Ryb2tlLWxpbmVjYXA9InJvdW5kIi8+CjxwYXRoIGQ9Ik0zIDE2YzMgMCAzLTMgNi0z\
            czMgMyA2IDMgMy0zIDYtMyIgZmlsbD0ibm9uZSIgc3Ryb2tlPSIjOWZkY2UyIiBzdHJva2Utd2lkdGg9IjIi\
            IHN0cm9rZS1saW5lY2FwPSJyb3VuZCIvPgo8L3N2Zz4K
            """)
}
