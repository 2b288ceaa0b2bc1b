// Written by tools/embed-console. Change the file in Static, then run that.

extension ConsoleFiles {
    static let indexHTML = ConsoleFile(
        "index.html",
        base64: """
            PCFkb2N0eXBlIGh0bWw+CjxodG1sIGxhbmc9ImVuIj4KPGhlYWQ+CjxtZXRhIGNoYXJzZXQ9InV0Zi04Ij4K\
            PG1ldGEgbmFtZT0idmlld3BvcnQiIGNvbnRlbnQ9IndpZHRoPWRldmljZS13aWR0aCwgaW5pdGlhbC1zY2Fs\
            ZT0xIj4KPG1ldGEgbmFtZT0iY29sb3Itc2NoZW1lIiBjb250ZW50PSJsaWdodCBkYXJrIj4KPG1ldGEgbmFt\
            ZT0icmVmZXJyZXIiIGNvbnRlbnQ9Im5vLXJlZmVycmVyIj4KPHRpdGxlPlRpZGVtYXJrIGNvbnNvbGU8L3Rp\
            dGxlPgo8bGluayByZWw9Imljb24iIGhyZWY9Imljb24uc3ZnIiB0eXBlPSJpbWFnZS9zdmcreG1sIj4KPGxp\
            bmsgcmVsPSJzdHlsZXNoZWV0IiBocmVmPSJzdHlsZS5jc3MiPgo8c2NyaXB0IHR5cGU9Im1vZHVsZSIgc3Jj\
            PSJhcHAuanMiPjwvc2NyaXB0Pgo8L2hlYWQ+Cjxib2R5Pgo8YSBjbGFzcz0ic2tpcCIgaHJlZj0iI21haW4i\
            IGlkPSJza2lwIj5Ta2lwIHRvIHRoZSBjb250ZW50PC9hPgo8aGVhZGVyIGNsYXNzPSJ0b3AiIGlkPSJ0b3Ai\
            IGhpZGRlbj4KPGEgY2xhc3M9ImJyYW5kIiBocmVmPSIjL292ZXJ2aWV3Ij48aW1nIHNyYz0iaWNvbi5zdmci\
            IGFsdD0iIiB3aWR0aD0iMjQiIGhlaWdodD0iMjQiPlRpZGVtYXJrPC9hPgo8YnV0dG9uIHR5cGU9ImJ1dHRv\
            biIgY2xhc3M9InBsYWluIG1lbnUiIGlkPSJtZW51IiBhcmlhLWV4cGFuZGVkPSJmYWxzZSIgYXJpYS1jb250\
            cm9scz0idmlld3MiPlZpZXdzPC9idXR0b24+CjxuYXYgaWQ9InZpZXdzIiBhcmlhLWxhYmVsPSJWaWV3cyI+\
            PC9uYXY+CjxidXR0b24gdHlwZT0iYnV0dG9uIiBjbGFzcz0icGxhaW4iIGlkPSJzaWduLW91dCI+U2lnbiBv\
            dXQ8L2J1dHRvbj4KPC9oZWFkZXI+CjxtYWluIGlkPSJtYWluIiB0YWJpbmRleD0iLTEiPjxwIGNsYXNzPSJx\
            dWlldCIgcm9sZT0ic3RhdHVzIj5Mb2FkaW5n4oCmPC9wPjwvbWFpbj4KPGRpdiBpZD0ibm90aWNlcyIgcm9s\
            ZT0ic3RhdHVzIiBhcmlhLWxpdmU9InBvbGl0ZSI+PC9kaXY+Cjxub3NjcmlwdD48cD5UaGUgY29uc29sZSBu\
            ZWVkcyBKYXZhU2NyaXB0LCB3aGljaCBjb21lcyBmcm9tIHRoaXMgaHViIGFsb25lLjwvcD48L25vc2NyaXB0\
            Pgo8L2JvZHk+CjwvaHRtbD4K
            """)
}
